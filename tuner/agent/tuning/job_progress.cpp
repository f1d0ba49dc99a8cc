#include "tuner/agent/tuning/job_progress.hpp"

#include <algorithm>

namespace cubind {
namespace {

constexpr std::chrono::milliseconds kBetweenReports{100};
constexpr std::chrono::milliseconds kBetweenStages{20};

}  // namespace

JobProgress::JobProgress(JobChannel& channel, const Clock& clock)
    : channel_(channel), clock_(clock), stage_("opening"), since_(clock.steady_now()) {
  progress_.set_state(v1::Job::RUNNING);
}

void JobProgress::switch_to(std::string_view stage) {
  const auto now = clock_.steady_now();
  auto at = std::ranges::find(stages_, stage_, [](const auto& one) { return one.first; });
  if (at == stages_.end()) {
    at = stages_.insert(at, {stage_, {}});
  }
  at->second += now - since_;
  since_ = now;
  stage_ = stage;
}

google::protobuf::RepeatedPtrField<v1::StageTime> JobProgress::stages() {
  switch_to(stage_);
  google::protobuf::RepeatedPtrField<v1::StageTime> stages;
  for (const auto& [stage, time] : stages_) {
    v1::StageTime& to = *stages.Add();
    to.set_stage(stage);
    to.set_ms(time.count());
  }
  return stages;
}

void JobProgress::stage(std::string_view stage) {
  progress_.set_stage(std::string(stage));
  timed_stage(stage);
}

void JobProgress::timed_stage(std::string_view stage) {
  if (stage_ == stage) {
    return send_if_due(kBetweenReports);
  }
  switch_to(stage);
  if (reported_stages_.emplace(stage).second || is_due(kBetweenStages)) {
    return send();
  }
  note_times();
  channel_.progress_soon(progress_);
}

void JobProgress::begin_state(v1::Job::State state) {
  const bool waits = state == v1::Job::WAITING_FOR_IDLE_GPU;
  switch_to(waits ? std::string_view("waiting_for_idle_gpu") : std::string_view(progress_.stage()));
  progress_.set_state(state);
}

void JobProgress::runs() {
  if (progress_.state() == v1::Job::RUNNING) {
    return;
  }
  begin_state(v1::Job::RUNNING);
  progress_.clear_waits_because();
  progress_.clear_is_lent();
  send();
}

void JobProgress::waits(const std::string& because, bool is_lent) {
  const bool waits = progress_.state() == v1::Job::WAITING_FOR_IDLE_GPU;
  // With a lend it is repeated, because the daemon waits for the agent's word on a new one.
  if (waits && progress_.waits_because() == because && !progress_.is_lent() && !is_lent) {
    return;
  }
  if (!waits) {
    begin_state(v1::Job::WAITING_FOR_IDLE_GPU);
  }
  progress_.set_waits_because(because);
  progress_.set_is_lent(is_lent);
  send();
}

void JobProgress::total(std::uint32_t configurations) { progress_.set_configurations(configurations); }

void JobProgress::done(std::uint32_t configurations) {
  progress_.set_configurations_done(configurations);
  send_if_due(kBetweenReports);
}

void JobProgress::nvrtc_calls(std::uint32_t calls) { progress_.set_nvrtc_calls(calls); }

void JobProgress::best(double time_us) { progress_.set_best_us(time_us); }

bool JobProgress::is_due(std::chrono::milliseconds since_last) const {
  return std::chrono::steady_clock::now() - sent_ >= since_last;
}

void JobProgress::send_if_due(std::chrono::milliseconds since_last) {
  if (is_due(since_last)) {
    send();
  }
}

void JobProgress::note_times() {
  *progress_.mutable_stages() = stages();
  progress_.set_timed_stage(stage_);
}

void JobProgress::send() {
  sent_ = std::chrono::steady_clock::now();
  note_times();
  channel_.progress(progress_);
}

}  // namespace cubind
