#include "client/cubindctl/progress_bar.hpp"

#include <catch2/catch.hpp>

#include "tuner/plan/problem.hpp"
#include "tuner/plan/wire.hpp"

namespace cubind::ctl {
namespace {

v1::TuneEvent halfway(const std::string& device = "nvidia-h200") {
  v1::TuneEvent event;
  v1::Job& job = *event.mutable_job();
  job.set_kernel("rmsnorm_forward");
  to_wire(parse_problem("N=4096,D=4096,T=bf16"), *job.mutable_problem());
  job.set_device(device);
  job.set_state(v1::Job::RUNNING);
  job.set_phase("screening");
  job.set_configurations(100);
  job.set_configurations_done(50);
  event.set_best_us(18.114);
  return event;
}

}  // namespace

TEST_CASE("a wide terminal is told everything") {
  CHECK(bar_text(halfway("replay-1a2b"), {2, 4}, 160) ==
        "replayed: 2 of 4 done [##########----------] 50/100 screening, best 18.11 us, rmsnorm_forward "
        "N=4096,D=4096,T=bf16");
}

TEST_CASE("what matters least goes first where the terminal is narrow") {
  const v1::TuneEvent event = halfway();
  CHECK(bar_text(event, {2, 4}, 90) ==
        "2 of 4 done [##########----------] 50/100 screening, best 18.11 us, N=4096,D=4096,T=bf16");
  CHECK(bar_text(event, {2, 4}, 60) == "2 of 4 done [#######-------] 50/100 screening, best 18.11 us");
  CHECK(bar_text(event, {2, 4}, 45) == "2/4 [###----] 50/100 screening, best 18.11 us");
  CHECK(bar_text(event, {2, 4}, 40) == "2/4 50/100 screening, best 18.11 us");
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
