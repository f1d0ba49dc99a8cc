// The addresses of the pages, and what surrounds them.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "client/web/http_server.hpp"
#include "client/web/snapshot.hpp"

namespace cubind::web {

/// The pages of a daemon. Thread-safe.
class Site {
 public:
  /// `snapshots` outlives it.
  explicit Site(Snapshots& snapshots) : snapshots_(snapshots) {}

  /// A page is made once of each snapshot, however many look at it. A fault of the daemon is a page: 404 for
  /// what does not exist, 503 while the daemon does not answer, which the page's script tries again.
  Response answer(const Request& request);

 private:
  Response route(const Request& request);
  Response page(const Request& request);

  Snapshots& snapshots_;
  std::mutex mutex_;
  std::shared_ptr<const Snapshot> last_;                                       // guarded by mutex_
  std::map<std::pair<std::string, decltype(Request::query)>, Response> made_;  // of it, guarded by mutex_
};

}  // namespace cubind::web
