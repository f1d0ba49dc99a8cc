// The server that all tests of this program use.
#pragma once

#include "tests/support/postgres_server.hpp"

namespace cubind::test {

/// Started with the first call.
PostgresServer& postgres_server();

}  // namespace cubind::test
