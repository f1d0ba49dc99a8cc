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

void JobProgress::unreported_stage(std::string_view stage) {
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
  unreported_stage(stage_);
  google::protobuf::RepeatedPtrField<v1::StageTime> stages;
  for (const auto& [stage, time] : stages_) {
    v1::StageTime& to = *stages.Add();
    to.set_stage(stage);
    to.set_ms(time.count());
  }
  return stages;
}

void JobProgress::stage(std::string_view stage) {
  unreported_stage(stage);
  if (progress_.stage() == stage) {
    return send_if_due(kBetweenReports);
  }
  progress_.set_stage(std::string(stage));
  reported_stages_.emplace(stage).second ? send() : send_if_due(kBetweenStages);
}

void JobProgress::begin_state(v1::Job::State state) {
  const bool waits = state == v1::Job::WAITING_FOR_IDLE_GPU;
  unreported_stage(waits ? std::string_view("waiting_for_idle_gpu") : std::string_view(progress_.stage()));
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

void JobProgress::send_if_due(std::chrono::milliseconds since_last) {
  if (std::chrono::steady_clock::now() - sent_ >= since_last) {
    send();
  }
}

void JobProgress::send() {
  sent_ = std::chrono::steady_clock::now();
  *progress_.mutable_stages() = stages();
  channel_.progress(progress_);
}

}  // namespace cubind
