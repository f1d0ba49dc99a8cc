#include "tuner/agent/lease/job_stop.hpp"

#include <catch2/catch.hpp>
#include <thread>

#include "base/error.hpp"
#include "tests/support/refusal_of.hpp"

namespace cubind {
namespace {

using test::code_of;

TEST_CASE("a job that is handed back is cancelled and one that lost its lease is aborted") {
  JobStop stop;
  stop.check();
  stop.request(JobStop::Kind::HandBack);
  CHECK(code_of([&] { stop.check(); }) == ErrorCode::Cancelled);
  stop.request(JobStop::Kind::Drop);
  CHECK(code_of([&] { stop.check(); }) == ErrorCode::Aborted);
}

TEST_CASE("a job that ends after its trial goes on within it and is handed back between two") {
  JobStop stop;
  stop.check_between_trials();
  bool hooked = false;
  const JobStop::Hook hook(stop, [&] { hooked = true; });
  stop.end_after_trial();
  stop.check();
  CHECK_FALSE(stop.requested());
  CHECK_FALSE(hooked);
  CHECK_THROWS_AS(stop.check_between_trials(), Error);
}

TEST_CASE("a lost lease is not handed back afterwards") {
  JobStop stop;
  stop.request(JobStop::Kind::Drop);
  stop.request(JobStop::Kind::HandBack);
  CHECK(stop.kind() == JobStop::Kind::Drop);
}

TEST_CASE("a stop wakes a sleeping job at once") {
  JobStop stop;
  std::thread other([&] { stop.request(JobStop::Kind::HandBack); });
  CHECK(stop.wait_for(std::chrono::seconds(30)));
  other.join();
}

TEST_CASE("a hook that comes after the stop runs at once and one that is gone does not run") {
  JobStop stop;
  int ran = 0;
  {
    const JobStop::Hook gone(stop, [&] { ++ran; });
  }
  stop.request(JobStop::Kind::HandBack);
  CHECK(ran == 0);
  const JobStop::Hook late(stop, [&] { ++ran; });
  CHECK(ran == 1);
}

TEST_CASE("a job that is woken sleeps no longer and is not stopped") {
  JobStop stop;
  std::thread other([&] { stop.wake(); });
  CHECK_FALSE(stop.wait_for(std::chrono::seconds(30)));
  other.join();
  stop.check();
}

}  // namespace
}  // namespace cubind
