#include "client/cubindctl/answers/explanation.hpp"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "tuner/measure/floor.hpp"
#include "tuner/measure/margins.hpp"
#include "tuner/measure/statistics.hpp"
#include "tuner/spec/occupancy.hpp"
#include "tuner/spec/space.hpp"
#include "tuner/table/table_samples.hpp"

namespace cubind::ctl {
namespace {

bool is_asked(const TableContext& context, const ExplainedQuestion& question) {
  return context.kernel == question.kernel && context.problem == question.problem &&
         context.policy == question.policy &&
         question.device_class.value_or(context.device_class) == context.device_class;
}

bool has_failed(const TableTrial& trial) {
  return trial.outcome != Outcome::Correct && trial.outcome != Outcome::Unverified;
}

class Explaining {
 public:
  Explaining(const Table& table, const KernelSpec& spec, const ExplainedQuestion& question,
             const MeasureSettings& settings)
      : table_(table), spec_(spec), question_(question), settings_(settings) {}

  Explanation run() && {
    find_device();
    find_record();
    find_trials();
    std::ranges::stable_sort(result_.timed, {}, [](const ExplainedTrial& one) {
      return std::pair(one.time_us, one.measured_as != nullptr);
    });
    add_effects();
    add_choice();
    return std::move(result_);
  }

 private:
  void find_device() {
    std::set<Digest> classes;
    for (const TableTrial& trial : table_.trials) {
      if (is_asked(trial.context, question_)) {
        classes.insert(trial.context.device_class);
      }
    }
    std::vector<std::string> labels;
    for (const TableDevice& device : table_.devices) {
      if (classes.contains(device.device_class)) {
        labels.push_back(device.label);
        device_ = &device;
      }
    }
    const std::string where = question_.kernel + " at " + to_string(question_.problem);
    if (labels.empty()) {
      throw Error(ErrorCode::NotFound, where,
                  "no trials are stored for it under " + question_.policy + ": `cubindctl tune` measures it");
    }
    if (labels.size() > 1) {
      throw Error(ErrorCode::InvalidArgument, where,
                  "trials are stored for " + join(labels, " and ") + ": name one by --device");
    }
    result_.device = device_->label;
    constants_ = device_constants(device_->facts);
    result_.work = spec_.work_sizes(question_.problem);
    default_ = default_configuration(spec_, question_.problem, constants_);
  }

  void find_record() {
    for (const TableRecord& record : table_.records) {
      const bool asked = is_asked(record.context, question_) &&
                         record.context.device_class == device_->device_class &&
                         record.numerics == question_.numerics && record.name_space == question_.name_space;
      if (asked &&
          (result_.record == nullptr || record.timing.measured_at() > result_.record->timing.measured_at())) {
        result_.record = &record;
      }
    }
    if (result_.record == nullptr) {
      result_.remarks.emplace_back("no winner is stored: its tuning has not ended, or failed");
    }
  }

  // Times under another driver or compiler are no reason for this winner.
  bool belongs(const TableTrial& trial) const {
    if (!is_asked(trial.context, question_) || trial.context.device_class != device_->device_class) {
      return false;
    }
    return result_.record == nullptr || trial.context.driver.empty() ||
           driver_branch(trial.context.driver) == driver_branch(result_.record->context.driver);
  }

  void find_trials() {
    for (const TableTrial& trial : table_.trials) {
      if (!belongs(trial)) {
        continue;
      }
      ++result_.trials;
      if (has_failed(trial)) {
        result_.failed.push_back(&trial);
      } else {
        add_timed(trial);
      }
    }
  }

  const TableTrial* measured_trial(const Digest& key) const {
    const auto found = std::ranges::find_if(
        table_.trials, [&](const TableTrial& trial) { return trial.context.trial == key && belongs(trial); });
    return found == table_.trials.end() ? nullptr : &*found;
  }

  void add_timed(const TableTrial& trial) {
    ExplainedTrial one;
    one.trial = &trial;
    one.is_winner = result_.record != nullptr && result_.record->context.trial == trial.context.trial;
    set_time(one);
    if (one.time_us <= 0) {
      return;
    }
    one.judged_against_us = trial.screening.empty() ? 0 : trial.screening.front().judged_against_us();
    if (trial.measured_as) {
      one.measured_as = measured_trial(*trial.measured_as);
    }
    one.is_default = default_ == trial.context.configuration;
    add_resources(one);
    add_rates(one);
    result_.timed.push_back(one);
  }

  // The winner has one time: its record's.
  void set_time(ExplainedTrial& one) const {
    const TableTrial& trial = *one.trial;
    const RoundTimes rounds = rounds_of(trial, settings_);
    const std::vector<double> screened = samples_of(trial.screening);
    if (one.is_winner) {
      one.time_us = result_.record->timing.median_us();
      one.samples = result_.record->timing.samples();
    } else if (!rounds.empty()) {
      one.time_us = record_time_us(rounds, {{}, trial.tick_us, settings_});
      one.samples = static_cast<std::uint32_t>(samples_of(trial.finals).size());
    } else if (!screened.empty()) {
      one.time_us = median(screened);
      one.samples = static_cast<std::uint32_t>(screened.size());
      one.screened = true;
    } else {
      one.time_us = trial.time_us;
      one.samples = trial.samples;
    }
  }

  void add_resources(ExplainedTrial& one) const {
    std::uint64_t fixed = 0, dynamic = 0;
    for (const EntryResources& entry : one.trial->resources) {
      one.registers = std::max(one.registers, entry.registers());
      one.tensor_cores = one.tensor_cores || entry.tensor_cores();
      one.spilled_bytes = std::max(one.spilled_bytes, entry.spill_store_bytes() + entry.spill_load_bytes());
      fixed = std::max<std::uint64_t>(fixed, entry.static_shared_bytes());
    }
    const LaunchPlan plan = plan_of(one.trial->context.configuration);
    for (const Launch& launch : plan.launches) {
      dynamic = std::max(dynamic, launch.shared_bytes);
      const auto occupied = occupancy(
          device_->facts.cc_major(), device_->facts.cc_minor(),
          {launch.block.x * launch.block.y * launch.block.z, one.registers, fixed + launch.shared_bytes});
      if (occupied && !one.trial->resources.empty()) {
        one.occupancy = std::min(one.occupancy.value_or(1), *occupied);
      }
    }
    one.shared_bytes = fixed + dynamic;
  }

  // Empty where today's spec no longer knows the configuration.
  LaunchPlan plan_of(const Configuration& configuration) const {
    try {
      const Configuration known = spec_.canonicalize(configuration, "configuration");
      const PlanEvaluator evaluator(spec_.plan_template(question_.problem, known), question_.problem, known,
                                    constants_);
      return evaluator.evaluate(question_.problem, known).plan.value_or(LaunchPlan{});
    } catch (const Error&) {
      return {};
    }
  }

  measure::FloorRates rates_of(const TableTrial& trial) const {
    std::uint32_t sm_mhz = 0, memory_mhz = 0;
    for (const auto* blocks : {&trial.screening, &trial.finals}) {
      for (const SampleBlock& block : *blocks) {
        sm_mhz = std::max(sm_mhz, block.conditions().sm_mhz());
        memory_mhz = std::max(memory_mhz, block.conditions().memory_mhz());
      }
    }
    return measure::floor_rates(device_->facts, sm_mhz, memory_mhz);
  }

  void add_rates(ExplainedTrial& one) {
    const double seconds = one.time_us * 1e-6;
    const WorkSizes& work = result_.work;
    if (work.bytes) {
      one.bytes_per_second = static_cast<double>(*work.bytes) / seconds;
    }
    if (work.flops) {
      one.flops_per_second = static_cast<double>(*work.flops) / seconds;
    }
    const measure::FloorRates rates = rates_of(*one.trial);
    PeakRates& peak = result_.peak;
    peak.bytes_per_second = std::max(peak.bytes_per_second, measure::peak_bytes_per_second(rates));
    peak.flops_per_second = std::max(peak.flops_per_second, measure::peak_flops_per_second(rates));
    const measure::Floor floor =
        measure::compute_floor({work.flops.value_or(0), work.bytes.value_or(0)}, rates, settings_);
    const bool all_known = (!work.bytes || floor.read_us > 0) && (!work.flops || floor.flops_us > 0);
    if (all_known && (work.bytes || work.flops)) {
      one.roofline_share = std::max(floor.read_us, floor.flops_us) / one.time_us;
    }
  }

  void add_effects() {
    std::vector<TimedConfiguration> timed;
    for (const ExplainedTrial& one : result_.timed) {
      timed.push_back({&one.trial->context.configuration, one.time_us});
    }
    result_.tunables = tunable_effects(timed);
    const bool none = std::ranges::none_of(
        result_.timed, [](const ExplainedTrial& one) { return one.roofline_share.has_value(); });
    if (none && !result_.timed.empty()) {
      result_.remarks.emplace_back(
          result_.work.bytes || result_.work.flops
              ? "the share of the roofline is unknown: the trials do not say the clocks of memory and SMs"
              : "the share of the roofline is unknown: the spec has no \"work\"");
    }
  }

  // Among the finalists, in canonical order. What today's spec does not list comes last.
  std::vector<std::uint64_t> ranks_of_finalists() const {
    std::vector<std::vector<std::size_t>> numbers;  // of each finalist's values in their lists
    for (const ExplainedFinalist& finalist : result_.finalists) {
      const Configuration& configuration = result_.timed[finalist.trial].trial->context.configuration;
      std::vector<std::size_t>& of_values = numbers.emplace_back();
      for (const Tunable& tunable : spec_.tunables) {
        const std::optional<std::int64_t> value = configuration.value(tunable.name);
        const auto listed = std::ranges::find(tunable.values, value.value_or(0));
        of_values.push_back(value ? static_cast<std::size_t>(listed - tunable.values.begin())
                                  : tunable.values.size());
      }
    }
    std::vector<std::uint64_t> ranks;
    for (const std::vector<std::size_t>& one : numbers) {
      ranks.push_back(static_cast<std::uint64_t>(
          std::ranges::count_if(numbers, [&](const auto& other) { return other < one; })));
    }
    return ranks;
  }

  void add_choice() {
    std::vector<RoundTimes> rounds;
    for (std::size_t i = 0; i < result_.timed.size(); ++i) {
      RoundTimes times = rounds_of(*result_.timed[i].trial, settings_);
      if (!times.empty() && !result_.timed[i].trial->measured_as) {
        result_.finalists.push_back({i, {}});
        rounds.push_back(std::move(times));
      }
    }
    if (rounds.empty()) {
      return;
    }
    const RoundContext context{Digest::of(question_.kernel),
                               result_.timed[result_.finalists.front().trial].trial->tick_us, settings_};
    std::size_t most = 0;
    for (const RoundTimes& times : rounds) {
      most = std::max(most, times.size());
    }
    const std::vector<std::uint64_t> ranks = ranks_of_finalists();
    std::vector<Contender> contenders;
    std::size_t winner = rounds.size();
    for (std::size_t i = 0; i < rounds.size(); ++i) {
      const ExplainedTrial& one = result_.timed[result_.finalists[i].trial];
      contenders.push_back({&rounds[i], rounds[i].size() == most, false, one.is_default, one.registers,
                            one.shared_bytes, ranks[i]});
      winner = one.is_winner ? i : winner;
    }
    result_.choice = choose(contenders, context);
    if (winner == rounds.size()) {
      winner = result_.choice->winner;
    }
    result_.chosen_otherwise = winner != result_.choice->winner;
    for (std::size_t i = 0; i < rounds.size(); ++i) {
      result_.finalists[i].to_winner = round_ratio(rounds[i], rounds[winner], context);
    }
  }

  const Table& table_;
  const KernelSpec& spec_;
  const ExplainedQuestion& question_;
  const MeasureSettings& settings_;
  const TableDevice* device_ = nullptr;
  DeviceConstants constants_;
  std::optional<Configuration> default_;
  Explanation result_;
};

}  // namespace

RoundTimes rounds_of(const TableTrial& trial, const MeasureSettings& settings) {
  RoundTimes times;
  for (std::uint32_t round = 0; round < trial.finals.size(); ++round) {
    if (const auto& samples = trial.finals[round].samples_us(); !samples.empty()) {
      times[round] = location_us(std::span(samples.data(), static_cast<std::size_t>(samples.size())),
                                 trial.tick_us, settings);
    }
  }
  return times;
}

Explanation explain(const Table& table, const KernelSpec& spec, const ExplainedQuestion& question,
                    const MeasureSettings& settings) {
  return Explaining(table, spec, question, settings).run();
}

}  // namespace cubind::ctl
