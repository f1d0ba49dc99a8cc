#include "server/metric_families.hpp"

#include <limits>
#include <map>
#include <string>
#include <utility>

#include "base/version.hpp"
#include "server/answer/artifact_budget.hpp"
#include "server/convert/replies.hpp"
#include "server/service/reply_cache.hpp"
#include "server/service/status.hpp"
#include "server/store/store.hpp"

namespace cubind {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

class Families {
 public:
  /// Starts a family; the next samples are its.
  Families& counter(std::string name, std::string help) {
    return start(std::move(name), std::move(help), MetricType::Counter);
  }
  Families& gauge(std::string name, std::string help) {
    return start(std::move(name), std::move(help), MetricType::Gauge);
  }
  Families& histogram(std::string name, std::string help) {
    return start(std::move(name), std::move(help), MetricType::Histogram);
  }

  template <typename Number>
  Families& sample(Number value, Labels labels = {}) {
    ClientMetric metric;
    metric.label = std::move(labels);
    metric.counter.value = metric.gauge.value = static_cast<double>(value);
    families_.back().metric.push_back(std::move(metric));
    return *this;
  }
  Families& sample(const AnswerCounts::Times& times, Labels labels) {
    ClientMetric metric;
    metric.label = std::move(labels);
    metric.histogram.sample_count = times.count;
    metric.histogram.sample_sum = times.seconds;
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < times.buckets.size(); ++i) {
      sum += times.buckets[i];
      const bool is_last = i == AnswerCounts::kBounds.size();
      metric.histogram.bucket.push_back(
          {sum, is_last ? std::numeric_limits<double>::infinity() : AnswerCounts::kBounds[i]});
    }
    families_.back().metric.push_back(std::move(metric));
    return *this;
  }

  std::vector<MetricFamily> take() { return std::move(families_); }

 private:
  Families& start(std::string name, std::string help, MetricType type) {
    families_.push_back({std::move(name), std::move(help), type, {}});
    return *this;
  }

  std::vector<MetricFamily> families_;
};

void add_answers(ServiceContext& context, Families& to) {
  const AnswerCounts::Sums sums = context.answers.sums();
  to.counter("cubind_answers_total", "Answers to GetVariant, by their worst departure and their evidence.");
  for (std::size_t slot = 0; slot < sums.answers.size(); ++slot) {
    if (sums.answers[slot] > 0) {
      const AnswerQuality quality = AnswerCounts::quality_of_slot(slot);
      to.sample(sums.answers[slot],
                {{"match", std::string(quality.worst ? to_string(*quality.worst) : "exact")},
                 {"evidence", std::string(to_string(quality.evidence))}});
    }
  }
  to.histogram("cubind_answer_seconds",
               "Time of an answered GetVariant in the daemon: repeated, looked up, or waited for.");
  const char* const paths[] = {"repeated", "looked_up", "waited"};
  for (std::size_t path = 0; path < AnswerCounts::kPaths; ++path) {
    to.sample(sums.times[path], {{"path", paths[path]}});
  }
  to.counter("cubind_answer_failures_total", "Calls of GetVariant that failed, by gRPC's code.");
  for (std::size_t code = 0; code < sums.failures.size(); ++code) {
    if (sums.failures[code] > 0) {
      to.sample(sums.failures[code], {{"code", status_name(static_cast<grpc::StatusCode>(code))}});
    }
  }
  to.counter("cubind_lookups_total", "Questions by whether a record answered at once.")
      .sample(context.hits + context.replies.found(), {{"result", "hit"}})
      .sample(context.misses.load(), {{"result", "miss"}});
}

void add_saved(ServiceContext& context, Families& to) {
  const Savings saved = context.saved.now();
  constexpr double kSeconds = 1e-3;
  to.counter("cubind_saved_seconds_total",
             "Measured time of work that answers have spared their callers; kept over restarts.")
      .sample(kSeconds * static_cast<double>(saved.compile_ms), {{"work", "compiling"}})
      .sample(kSeconds * static_cast<double>(saved.tuning_ms), {{"work", "tuning"}});
  to.counter("cubind_saved_answers_total",
             "Answers that gave a process an artifact which it lacked, by whether its work was timed.")
      .sample(saved.timed, {{"timed", "yes"}})
      .sample(saved.answers - saved.timed, {{"timed", "no"}});
}

void add_jobs(ServiceContext& context, Families& to) {
  std::map<JobState, std::uint64_t> open{{v1::Job::QUEUED, 0},
                                         {v1::Job::RUNNING, 0},
                                         {v1::Job::NO_DEVICE, 0},
                                         {v1::Job::WAITING_FOR_IDLE_GPU, 0}};
  for (const JobEvent& event : context.scheduler.open_jobs()) {
    ++open[event.job.state];
  }
  to.gauge("cubind_jobs", "Jobs that have not ended, by state.");
  for (const auto& [state, count] : open) {
    to.sample(count, {{"state", job_state_name(state)}});
  }
  const JobTotals& totals = context.scheduler.queue().totals();
  to.counter("cubind_job_outcomes_total", "Jobs that ended, by how.");
  for (const auto& [state, count] : totals.ended) {
    to.sample(count, {{"outcome", job_state_name(state)}});
  }
  to.counter("cubind_trials_total", "Configurations that ended jobs have tried, by outcome.");
  for (const auto& [outcome, count] : totals.trials) {
    to.sample(count, {{"outcome", std::string(to_string(outcome))}});
  }
  to.counter("cubind_winner_changes_total", "Records that replaced one with another configuration.")
      .sample(context.scheduler.outcomes().winner_changes());
}

void add_agents(ServiceContext& context, Families& to) {
  const auto agents = context.scheduler.agents().profiles();
  to.gauge("cubind_agents", "Connected agents.").sample(agents.size());
  std::map<std::pair<std::string, std::string>, std::uint64_t> gpus;
  for (const OfferedDevice& device : devices_of(agents)) {
    ++gpus[{device.device.label, context.scheduler.leases().gpu_state(device.uuid)}];
  }
  to.gauge("cubind_gpus", "GPUs that agents offer, by device class and state.");
  for (const auto& [key, count] : gpus) {
    to.sample(count, {{"device_class", key.first}, {"state", key.second}});
  }
}

void add_store(ServiceContext& context, Families& to) {
  const StoreCounts counts = context.store.counts();
  to.gauge("cubind_records", "Current records.").sample(counts.records);
  to.gauge("cubind_artifacts", "Compiled variants in the store.").sample(counts.artifacts);
  to.gauge("cubind_trials_stored", "Trials in the store.").sample(counts.trials);
  to.gauge("cubind_wanted_problems", "Problems of the want list.").sample(counts.wants);
  to.gauge("cubind_store_bytes", "Size of the store, by part.")
      .sample(counts.file_bytes, {{"part", "file"}})
      .sample(counts.cubin_bytes, {{"part", "cubins"}});
  to.gauge("cubind_cubin_limit_bytes", "The room for cubins in the store; 0: no limit.")
      .sample(context.budget.max_bytes());
  to.counter("cubind_cubins_evicted_total", "Cubins removed to make room.").sample(context.budget.evicted());
  to.gauge("cubind_store_read_only", "1 while the store takes no writes.")
      .sample(context.store.read_only_reason() ? 1 : 0);
  to.counter("cubind_store_damaged_rows_total", "Damaged rows that reads have left out.")
      .sample(context.store.damaged_rows());
}

void add_process(ServiceContext& context, Families& to) {
  const std::chrono::duration<double> uptime = context.clock.steady_now() - context.started_at;
  to.gauge("cubind_build_info", "Always 1; the label tells the version.").sample(1, {{"version", kVersion}});
  to.gauge("cubind_uptime_seconds", "Time since the daemon started.").sample(uptime.count());
  std::uint64_t faults = 0;
  for (const auto& entry : *context.kernels.kernels()) {
    faults += entry->error.empty() ? 0 : 1;
  }
  to.gauge("cubind_kernel_errors", "Kernel specs that cannot be read as they are now.").sample(faults);
}

}  // namespace

std::vector<MetricFamily> metric_families(ServiceContext& context) {
  Families families;
  add_answers(context, families);
  add_saved(context, families);
  context.jobs.run([&] {
    add_jobs(context, families);
    add_agents(context, families);
  });
  add_store(context, families);
  add_process(context, families);
  return families.take();
}

}  // namespace cubind
