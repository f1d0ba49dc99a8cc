#include "tuner/agent/job_progress.hpp"

#include <algorithm>

namespace cubind {

JobProgress::JobProgress(JobChannel& channel) : channel_(channel) { progress_.set_state(v1::Job::RUNNING); }

void JobProgress::phase(std::string_view phase) {
  if (progress_.phase() == phase) {
    return send_if_due();
  }
  progress_.set_phase(std::string(phase));
  send();
}

void JobProgress::state(v1::Job::State state) {
  if (progress_.state() == state) {
    return;
  }
  progress_.set_state(state);
  send();
}

void JobProgress::total(std::uint32_t configurations) { progress_.set_configurations(configurations); }

void JobProgress::done(std::uint32_t configurations) {
  progress_.set_configurations_done(configurations);
  send_if_due();
}

void JobProgress::nvrtc_calls(std::uint32_t calls) { progress_.set_nvrtc_calls(calls); }

void JobProgress::best(double time_us) { progress_.set_best_us(time_us); }

void JobProgress::send_if_due() {
  if (std::chrono::steady_clock::now() - sent_ >= std::chrono::milliseconds(100)) {
    send();
  }
}

void JobProgress::send() {
  sent_ = std::chrono::steady_clock::now();
  channel_.progress(progress_);
}

}  // namespace cubind
