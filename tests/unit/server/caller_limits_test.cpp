#include "server/access/caller_limits.hpp"

#include <catch2/catch.hpp>

#include <optional>
#include <utility>

#include "base/error.hpp"

namespace cubind {

TEST_CASE("a caller holds as much as its limit and the refusal names the limit") {
  CallerLimits limits;
  for (const CallerLimit& limit : kCallerLimits) {
    const CallerLimits::Hold all = limits.take("alice", limit.what, limit.most);
    CHECK_THROWS_WITH(limits.take("alice", limit.what),
                      Catch::StartsWith("caller alice: has " + std::to_string(limit.most) + " " +
                                        std::string(limit.unit)) &&
                          Catch::EndsWith(std::string(limit.remedy)));
    CHECK_NOTHROW(limits.take("bob", limit.what, limit.most));
  }
}

TEST_CASE("a hold that ends or moves is counted once") {
  CallerLimits limits;
  std::optional<CallerLimits::Hold> first = limits.take("alice", Held::Jobs, 2);
  CallerLimits::Hold moved = std::move(*first);
  first.reset();
  CHECK(limits.held("alice", Held::Jobs) == 2);
  moved = limits.take("alice", Held::Jobs, 3);
  CHECK(limits.held("alice", Held::Jobs) == 3);
  moved = CallerLimits::Hold();
  CHECK(limits.held("alice", Held::Jobs) == 0);
}

TEST_CASE("a hold that cannot grow stays as it is") {
  CallerLimits limits;
  {
    CallerLimits::Hold hold = limits.take("alice", Held::Checks, 10);
    CHECK_THROWS_AS(hold.add(7), Error);
    CHECK_THROWS_AS(hold.add(UINT64_MAX), Error);
    CHECK(limits.held("alice", Held::Checks) == 10);
    hold.add(6);
  }
  CHECK(limits.held("alice", Held::Checks) == 0);
}

TEST_CASE("the daemon's own work has no limit") {
  CallerLimits limits;
  const CallerLimits::Hold all = limits.take("", Held::Jobs, UINT64_MAX);
  CHECK_NOTHROW(limits.take("", Held::Jobs, UINT64_MAX));
}

}  // namespace cubind
