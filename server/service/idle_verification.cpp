#include "server/service/idle_verification.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"

namespace cubind {
namespace {

std::set<Digest> measurable_classes(const AgentProfiles& agents) {
  std::set<Digest> classes;
  for (const OfferedDevice& device : devices_of(agents)) {
    if (may_measure(device)) {
      classes.insert(device.device.digest);
    }
  }
  return classes;
}

}  // namespace

void IdleVerification::tick() {
  const Time now = context_.clock.steady_now();
  if (now < next_look_ || context_.draining) {
    return;
  }
  next_look_ = now + options_.look;
  std::set<Digest> busy;
  for (const JobEvent& event : context_.scheduler.open_jobs()) {
    busy.insert(event.job.question.device_class);
  }
  for (const Digest& device_class : measurable_classes(*context_.fleet.agents())) {
    ClassState& state = classes_.try_emplace(device_class, ClassState{.busy = now}).first->second;
    if (busy.contains(device_class) && !state.occupied) {
      state.busy = now;
    }
    look_at(device_class, now);
  }
}

void IdleVerification::look_at(const Digest& device_class, Time now) {
  ClassState& state = classes_.at(device_class);
  if (state.occupied || now < state.busy + options_.idle || now < state.rests_until) {
    return;
  }
  state.occupied = true;
  context_.background.post("", [self = shared_from_this(), device_class] { self->search(device_class); });
}

void IdleVerification::search(const Digest& device_class) {
  RecordWishes wishes;
  wishes.device_class = device_class;
  std::vector<MeasuredRecord> stale;
  try {
    stale = measured_records(context_, wishes);
  } catch (const Error& error) {
    log_warning(std::string("stale records are not looked for: ") + error.what());
  }
  context_.jobs.post([self = shared_from_this(), device_class, stale = std::move(stale)] {
    const auto next = std::ranges::find_if(
        stale, [&](const MeasuredRecord& one) { return !self->tried_.contains(one.record->id); });
    if (next == stale.end()) {
      ClassState& state = self->classes_.at(device_class);
      state.occupied = false;
      state.rests_until = self->context_.clock.steady_now() + self->options_.look_again;
      return;
    }
    self->submit(device_class, *next);
  });
}

void IdleVerification::submit(const Digest& device_class, const MeasuredRecord& record) {
  tried_.insert(record.record->id);
  const RecordQuestion& question = record.question.key;
  try {
    const TuneOrder order{.question = question,
                          .device = record.question.device,
                          .budget = SearchBudget{},
                          .listed = record.best};
    const JobEvent job = context_.scheduler.submit_tunes({order}, true).front();
    log_info("measures a stale record again: " + question.kernel + " at " + to_string(question.problem));
    const std::uint64_t watch = context_.scheduler.watch(
        job.job.id, [self = shared_from_this(), device_class](const JobEvent& event) {
          if (has_ended(event.job.state)) {
            self->ended(device_class, event.job.shown().elapsed_ms());
          }
        });
    if (watch == 0) {
      ended(device_class, job.job.shown().elapsed_ms());
    }
  } catch (const Error& error) {
    log_warning(std::string("a stale record is not measured again: ") + error.what());
    ended(device_class, 0);
  }
}

void IdleVerification::ended(const Digest& device_class, double elapsed_ms) {
  ClassState& state = classes_.at(device_class);
  state.occupied = false;
  const std::chrono::duration<double, std::milli> rest(elapsed_ms * (1 / options_.share - 1));
  state.rests_until =
      context_.clock.steady_now() + std::chrono::duration_cast<std::chrono::milliseconds>(rest);
}

}  // namespace cubind
