// The addresses of the pages, and what surrounds them.
#pragma once

#include "client/web/http_server.hpp"
#include "client/web/snapshot.hpp"

namespace cubind::web {

/// The answer to a request. Thread-safe. A fault of the daemon is a page: 404 for what does not exist, 503
/// while the daemon does not answer, which the page's script tries again.
Response answer(Snapshots& snapshots, const Request& request);

}  // namespace cubind::web
