#include "client/cubindctl/tune/progress.hpp"

#include <catch2/catch.hpp>
#include <sstream>

#include "client/cubindctl/tune/progress_bar.hpp"
#include "tests/fakes/sample_reply.hpp"

namespace cubind::ctl {
namespace {

v1::TuneEvent event(v1::Job::State state, const std::string& stage = "",
                    const std::string& device = "nvidia-h200") {
  const v1::GetVariantReply reply =
      test::sample_reply({{{"N", 1024}, {"D", 4096}}, {{"T", DType::F16}}, {}, ""}, "cubin");
  v1::TuneEvent event;
  event.mutable_job()->set_id("j1");
  event.mutable_job()->set_kernel("scale");
  *event.mutable_job()->mutable_problem() = reply.problem();
  event.mutable_job()->set_device(device);
  event.mutable_job()->set_state(state);
  event.mutable_job()->set_stage(stage);
  event.mutable_job()->set_configurations(96);
  event.mutable_job()->set_configurations_done(48);
  event.mutable_job()->set_elapsed_ms(6100);
  if (state == v1::Job::DONE) {
    *event.mutable_winner() = reply.configuration();
    *event.mutable_provenance() = reply.provenance();
  }
  return event;
}

}  // namespace

TEST_CASE("of a job that runs its stage is shown and of one that has ended what else is to be known") {
  v1::Job job = event(v1::Job::RUNNING, "screening").job();
  job.set_note("9 GiB are needed");
  CHECK(detail_of(job) == "screening");
  job.set_state(v1::Job::DONE);
  CHECK(detail_of(job) == "9 GiB are needed");
  job.clear_note();
  CHECK(detail_of(job).empty());
  job.set_error("no configuration survived");
  CHECK(detail_of(job) == "no configuration survived");
}

TEST_CASE("of a job that waits its reason is shown") {
  v1::Job job = event(v1::Job::NO_DEVICE, "", "nvidia-h200").job();
  CHECK(detail_of(job) == "waits: no agent offers nvidia-h200");
  job.set_state(v1::Job::WAITING_FOR_IDLE_GPU);
  CHECK(detail_of(job) == "waits: another process uses the GPU");
}

TEST_CASE("plain lines tell each stage once and the winner at the end") {
  std::ostringstream out;
  Progress progress(out, {}, 1);
  progress.event(event(v1::Job::QUEUED));
  v1::TuneEvent begun = event(v1::Job::RUNNING, "compiling");
  begun.mutable_job()->set_configurations_done(0);
  progress.event(begun);
  progress.event(event(v1::Job::RUNNING, "screening"));
  progress.event(event(v1::Job::RUNNING, "compiling"));
  progress.event(event(v1::Job::DONE));
  progress.finish();
  CHECK(out.str() ==
        "scale N=1024,D=4096,T=f16: queued (job j1)\n"
        "scale N=1024,D=4096,T=f16: compiling (job j1)\n"
        "scale N=1024,D=4096,T=f16: screening (job j1)\n"
        "scale N=1024,D=4096,T=f16 on nvidia-h200: 24.10 us [24.00, 24.25], 1.18x the default, "
        "THREADS=256,VECTOR=4, measured; 96 configurations in 6.1 s\n");
}

TEST_CASE("of a record that was measured again the line says by how much and whether the winner stays") {
  v1::TuneEvent ended = event(v1::Job::DONE);
  v1::RecordBefore& before = *ended.mutable_before();
  *before.mutable_winner() = ended.winner();
  before.mutable_provenance()->mutable_timing()->set_median_us(24.1 / 1.02);
  before.mutable_provenance()->mutable_driver()->set_version("570.86.15");
  before.mutable_provenance()->set_toolchain("nvrtc 12.8");
  CHECK(result_text(ended).ends_with(
      "; was 23.63 us with driver 570.86.15 and nvrtc 12.8, now +2.0 %, the winner stays"));
  before.mutable_winner()->mutable_values(0)->set_value(512);
  before.mutable_provenance()->mutable_timing()->set_median_us(24.1 / 0.96);
  CHECK(result_text(ended).ends_with("now -4.0 %, the winner was THREADS=512,VECTOR=4"));
  ended.mutable_job()->mutable_policy()->set_flush_method(3);
  before.mutable_policy()->set_flush_method(3);
  CHECK(result_text(ended).find("L2") == std::string::npos);
  before.mutable_policy()->set_flush_method(2);
  CHECK(result_text(ended).find(" and nvrtc 12.8, the L2 cleared as in cold/2, now -4.0 %") !=
        std::string::npos);
}

TEST_CASE("a terminal gets one line that is redrawn and leaves room for what Ctrl-C prints") {
  std::ostringstream out;
  Progress progress(out, {[] { return 40; }}, 1);
  progress.event(event(v1::Job::RUNNING, "screening"));
  const std::string drawn = out.str();
  CHECK(drawn == "\r[#########----------] 48/96 screening\x1b[K");
  CHECK(drawn.size() - 4 <= 37);
  progress.finish();
  CHECK(out.str() == drawn + "\r\x1b[K");
}

TEST_CASE("what has not changed is not drawn again") {
  std::ostringstream out;
  Progress progress(out, {[] { return 80; }}, 1);
  progress.event(event(v1::Job::RUNNING, "screening"));
  const std::string drawn = out.str();
  progress.event(event(v1::Job::RUNNING, "screening"));
  CHECK(out.str() == drawn);
}

TEST_CASE("a terminal that has become narrower loses all rows of the line") {
  std::ostringstream out;
  std::size_t columns = 100;
  Progress progress(out, {[&] { return columns; }}, 1);
  progress.event(event(v1::Job::RUNNING, "screening"));
  out.str("");
  columns = 30;  // the line of 66 now stands in three rows
  progress.event(event(v1::Job::RUNNING, "finalists"));
  CHECK(out.str().starts_with("\r\x1b[2A\x1b[J"));
}

TEST_CASE("the line is about a job that runs while others are queued") {
  std::ostringstream out;
  Progress progress(out, {[] { return 80; }}, 2);
  progress.event(event(v1::Job::RUNNING, "screening"));
  out.str("");
  v1::TuneEvent queued = event(v1::Job::QUEUED);
  queued.mutable_job()->set_id("j2");
  progress.event(queued);
  CHECK(out.str().empty());  // the line stays as it is
}

TEST_CASE("a result is broken at words on a terminal") {
  std::ostringstream out;
  Progress progress(out, {[] { return 60; }}, 1);
  progress.event(event(v1::Job::DONE, "", "replay-1a2b3c4d"));
  std::istringstream lines(out.str());
  for (std::string line; std::getline(lines, line);) {
    CHECK(line.size() <= 60);
    CHECK(line.starts_with("replayed: "));
  }
}

TEST_CASE("every line about a replay device says so") {
  std::ostringstream out;
  Progress progress(out, {}, 1);
  progress.event(event(v1::Job::RUNNING, "screening", "replay-1a2b3c4d"));
  progress.event(event(v1::Job::DONE, "", "replay-1a2b3c4d"));
  std::istringstream lines(out.str());
  for (std::string line; std::getline(lines, line);) {
    CHECK(line.starts_with("replayed: "));
  }
}

TEST_CASE("what has not ended and what failed is known") {
  std::ostringstream out;
  Progress progress(out, {}, 1);
  progress.event(event(v1::Job::RUNNING, "screening"));
  CHECK(progress.unfinished() == std::vector<std::string>{"j1"});
  CHECK_FALSE(progress.any_failed());
  v1::TuneEvent failed = event(v1::Job::FAILED);
  failed.mutable_job()->set_error("every configuration was refused");
  progress.event(failed);
  CHECK(progress.unfinished().empty());
  CHECK(progress.any_failed());
  CHECK(out.str().ends_with("failed: every configuration was refused\n"));
}

TEST_CASE("problems that are fresh already have no job and are kept apart") {
  std::ostringstream out;
  Progress progress(out, {}, 2);
  v1::TuneEvent fresh = event(v1::Job::DONE);
  fresh.mutable_job()->clear_id();
  fresh.set_already_fresh(true);
  progress.event(fresh);
  fresh.mutable_job()->mutable_problem()->mutable_dims(0)->set_value(2048);
  progress.event(fresh);
  REQUIRE(progress.jobs().size() == 2);
  CHECK(progress.jobs()[0].job().problem().dims(0).value() == 1024);
  CHECK(progress.jobs()[1].job().problem().dims(0).value() == 2048);
}

TEST_CASE("a job that waits for a toolchain says which") {
  v1::TuneEvent waiting = event(v1::Job::NO_DEVICE);
  waiting.mutable_job()->set_note("needs Triton 3.6.0 with ptxas 12.9 for sm_90");
  CHECK(state_text(waiting.job()) ==
        "waits: no agent offers nvidia-h200 (needs Triton 3.6.0 with ptxas 12.9 for sm_90)");
}

TEST_CASE("a job that waits says for what") {
  std::ostringstream out;
  Progress progress(out, {}, 1);
  progress.event(event(v1::Job::NO_DEVICE));
  progress.event(event(v1::Job::WAITING_FOR_IDLE_GPU));
  CHECK(out.str().find("waits: no agent offers nvidia-h200") != std::string::npos);
  CHECK(out.str().find("waits: another process uses the GPU") != std::string::npos);
}

}  // namespace cubind::ctl
