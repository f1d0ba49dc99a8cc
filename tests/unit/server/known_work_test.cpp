// The known work of a lease, in pages.
#include <catch2/catch.hpp>

#include "server/convert/agent_messages.hpp"
#include "tests/unit/server/rows.hpp"

namespace cubind::test {
namespace {

Lease lease_with(std::size_t trials) {
  Lease lease;
  lease.id = "lease-1";
  for (std::size_t i = 0; i < trials; ++i) {
    lease.trials.push_back(trial_row("t" + std::to_string(i)));
    lease.blocks.push_back(block_row(lease.trials.back(), 0));
  }
  return lease;
}

TEST_CASE("a lease without known work has no pages") { CHECK(known_work(lease_with(0)).empty()); }

TEST_CASE("what is known of many trials comes in pages below gRPC's limit and whole") {
  constexpr std::size_t kTrials = 20'000;
  const auto pages = known_work(lease_with(kTrials));
  REQUIRE(pages.size() > 2);
  v1::LeaseGrant all;
  for (const v1::LeaseGrant& page : pages) {
    CHECK(page.ByteSizeLong() < (std::size_t{2} << 20));
    CHECK(page.more());
    CHECK(page.lease_id() == "lease-1");
    all.MergeFrom(page);
  }
  CHECK(all.trials_size() == kTrials);
  CHECK(all.blocks_size() == kTrials);
  CHECK(all.trials(kTrials - 1).trial_key() == std::string(key_of("trial t19999").digest.view()));
}

TEST_CASE("an announcement names artifacts by their keys and nothing else that is known") {
  Lease next = lease_with(3);
  next.artifacts = {artifact_row("a", "cubin")};
  v1::LeaseGrant told;
  announcement_of(next, told);
  REQUIRE(told.artifacts_size() == 1);
  CHECK(told.artifacts(0).key() == std::string(next.artifacts[0].key.digest.view()));
  CHECK_FALSE(told.artifacts(0).has_info());
  CHECK(told.trials_size() + told.blocks_size() == 0);
}

}  // namespace
}  // namespace cubind::test
