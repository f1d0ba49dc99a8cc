#include "client/cubindctl/tune/progress_bar.hpp"

#include <catch2/catch.hpp>

#include "plan/problem.hpp"
#include "plan/wire.hpp"

namespace cubind::ctl {
namespace {

v1::TuneEvent halfway(const std::string& device = "nvidia-h200") {
  v1::TuneEvent event;
  v1::Job& job = *event.mutable_job();
  job.set_kernel("rmsnorm_forward");
  to_wire(parse_problem("N=4096,D=4096,T=bf16"), *job.mutable_problem());
  job.set_device(device);
  job.set_state(v1::Job::RUNNING);
  job.set_stage("screening");
  job.set_configurations(100);
  job.set_configurations_done(50);
  event.set_best_us(18.114);
  return event;
}

}  // namespace

TEST_CASE("a wide terminal shows everything") {
  CHECK(bar_text(halfway("replay-1a2b"), {2, 4}, 160) ==
        "replayed: 2 of 4 done [##########----------] 50/100 screening, best screened 18.11 us, "
        "rmsnorm_forward "
        "N=4096,D=4096,T=bf16");
}

TEST_CASE("what matters least goes first where the terminal is narrow") {
  const v1::TuneEvent event = halfway();
  CHECK(bar_text(event, {2, 4}, 99) ==
        "2 of 4 done [##########----------] 50/100 screening, best screened 18.11 us, N=4096,D=4096,T=bf16");
  CHECK(bar_text(event, {2, 4}, 69) ==
        "2 of 4 done [#######-------] 50/100 screening, best screened 18.11 us");
  CHECK(bar_text(event, {2, 4}, 54) == "2/4 [###----] 50/100 screening, best screened 18.11 us");
  CHECK(bar_text(event, {2, 4}, 49) == "2/4 50/100 screening, best screened 18.11 us");
}

TEST_CASE("the line tells the time so far and about how much is left") {
  v1::TuneEvent event = halfway();
  event.mutable_job()->set_elapsed_ms(12'000);
  CHECK(bar_text(event, {}, 94) ==
        "[##########----------] 50/100 screening, best screened 18.11 us, 12 s, about 12 s left");
  CHECK(bar_text(event, {}, 60) == "[#########---------] 50/100 screening, 12 s, about 12 s left");
  CHECK(bar_text(event, {}, 48) == "[###---] 50/100 screening, 12 s, about 12 s left");
  CHECK(bar_text(event, {}, 45) == "50/100 screening, best screened 18.11 us");
  // Two jobs of 20 s have ended, this one takes 24 s, and one more of its kind follows.
  CHECK(bar_text(event, {2, 4, 2, 40'000}, 120).find("52 s, about 36 s left") != std::string::npos);
}

TEST_CASE("no rest is shown before it can be known") {
  v1::Job job = halfway().job();
  job.set_elapsed_ms(12'000);
  CHECK(*time_left_ms(job, {}) == Approx(12'000));
  job.set_configurations_done(4);
  CHECK_FALSE(time_left_ms(job, {}));
  CHECK(*time_left_ms(job, {1, 2, 1, 30'000}) == Approx(18'000));
  job.set_configurations_done(100);  // the finalists
  CHECK_FALSE(time_left_ms(job, {}));
  job.set_configurations(0);
  CHECK_FALSE(time_left_ms(job, {}));
}

TEST_CASE("what a job compiles and verifies while it screens is shown as screening") {
  v1::Job job = halfway().job();
  for (const char* stage : {"compiling", "verifying", "screening"}) {
    job.set_stage(stage);
    job.set_configurations_done(50);
    CHECK(state_text(job) == "screening");
  }
  job.set_stage("compiling");
  job.set_configurations_done(0);
  CHECK(state_text(job) == "compiling");
  job.set_stage("verifying");  // the winner
  job.set_configurations_done(100);
  CHECK(state_text(job) == "verifying");
  job.set_kind(v1::Job::COMPILE_WINNER);
  job.set_stage("compiling");
  job.set_configurations_done(1);
  CHECK(state_text(job) == "compiling");
}

TEST_CASE("no line is longer than the terminal is wide") {
  v1::TuneEvent event = halfway("replay-1a2b");
  event.mutable_job()->set_kernel(std::string(300, 'k'));
  for (std::size_t columns = 1; columns < 500; ++columns) {
    CHECK(bar_text(event, {12, 345}, columns).size() <= columns);
  }
}

TEST_CASE("before the configurations are counted there is no count") {
  v1::TuneEvent event = halfway();
  event.mutable_job()->set_configurations(0);
  event.clear_best_us();
  CHECK(bar_text(event, {}, 40) == "[--------------------] screening");
}

}  // namespace cubind::ctl
