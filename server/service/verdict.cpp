#include "server/service/verdict.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "base/error.hpp"
#include "plan/answer_wire.hpp"
#include "plan/facts/fact_json.hpp"
#include "plan/problem_json.hpp"
#include "server/convert/judged_kernel.hpp"
#include "tuner/measure/floor.hpp"
#include "tuner/measure/statistics.hpp"

namespace cubind {
namespace {

constexpr double kConfidence = 0.95;
// The mildest first: the worst of its problems' is a verdict's.
constexpr std::array kOutcomes = {"correct", "refused", "suspect", "unreproducible", "wrong"};
constexpr double kMostBlank = 0.5;             // of an output that may pass although nothing was computed
constexpr double kMostGainFromEarlier = 1.15;  // how much faster it may be where it may use earlier results

struct Gain {
  double ratio = 1, low = 1, high = 1;
  double fast_quarter = 1, fast_tenth = 1;  // of the rounds' times: a source cannot hide fast ones
};

/// A trial with all that is stored of it.
struct Judged {
  TrialRow trial;
  std::vector<BlockRow> blocks;
  std::vector<VerificationRow> verifications;
};

RecordFilter of_kernels(std::vector<std::string> kernels) {
  RecordFilter filter;
  filter.kernels = std::move(kernels);
  return filter;
}

std::optional<Judged> find(StoreReader& store, const JudgedProblem& problem, bool is_baseline) {
  const Configuration wanted = judged_configuration(problem.baseline, is_baseline);
  for (TrialRow& trial : store.all_trials(of_kernels({problem.question.key.kernel}))) {
    if (trial.configuration == wanted) {
      Judged judged{std::move(trial), {}, {}};
      judged.blocks = store.blocks(judged.trial);
      judged.verifications = store.verifications(judged.trial);
      return judged;
    }
  }
  return std::nullopt;
}

// The first two launches find what is always wrong.
bool is_sometimes_right(const Judged& judged) {
  return std::ranges::any_of(judged.verifications, [](const VerificationRow& row) {
    return row.verification().outcome() == v1::WRONG_RESULT && row.verification().launches() > 2;
  });
}

const char* outcome_of(const Judged& judged) {
  switch (judged.trial.outcome) {
    case Outcome::Correct:
      return "correct";
    case Outcome::WrongResult:
      return judged.trial.header().detail().starts_with(measure::kTimeRefused) ? "suspect"
             : is_sometimes_right(judged)                                      ? "unreproducible"
                                                                               : "wrong";
    case Outcome::Runtime:
    case Outcome::Timeout:
      return "wrong";
    default:
      return "refused";
  }
}

std::map<std::uint32_t, double> times_of(const Judged& judged) {
  std::map<std::uint32_t, double> times;
  for (const BlockRow& row : judged.blocks) {
    if (row.block().stage() == v1::SampleBlock::FINAL && !row.block().samples_us().empty()) {
      const auto& samples = row.block().samples_us();
      times[row.block().index()] = median(std::vector<double>(samples.begin(), samples.end()));
    }
  }
  return times;
}

enum class Rounds : std::uint8_t { All, SameInputs, ChangedInputs };

/// Every second round has inputs of its own (see LeaseGrant).
bool is_among(std::uint32_t round, Rounds rounds) {
  return rounds == Rounds::All || (round % 2 == 1) == (rounds == Rounds::ChangedInputs);
}

/// From the rounds in which both were timed; absent: there is none.
std::optional<Gain> gain_of(const Judged& source, const Judged& baseline, Rounds rounds = Rounds::All) {
  const std::map<std::uint32_t, double> own = times_of(source), theirs = times_of(baseline);
  std::vector<double> a, b;
  for (const auto& [round, time] : theirs) {
    if (const auto found = own.find(round); found != own.end() && is_among(round, rounds)) {
      a.push_back(time);
      b.push_back(found->second);
    }
  }
  if (a.empty()) {
    return std::nullopt;
  }
  const PairedRatio paired = paired_ratio(a, b, kConfidence);
  std::ranges::sort(a);
  std::ranges::sort(b);
  const std::size_t quarter = a.size() / 4, tenth = a.size() / 10;
  return Gain{paired.ratio, paired.interval.low, paired.interval.high, a[quarter] / b[quarter],
              a[tenth] / b[tenth]};
}

void add(OrderedJson& json, const Gain& gain) {
  json["gain"] = gain.ratio;
  json["gain_low"] = gain.low;
  json["gain_high"] = gain.high;
}

OrderedJson to_json(const Judged& judged) {
  OrderedJson json = {{"outcome", std::string(to_string(judged.trial.outcome))}};
  if (!judged.trial.header().detail().empty()) {
    json["detail"] = judged.trial.header().detail();
  }
  if (const auto times = times_of(judged); !times.empty()) {
    std::vector<double> all;
    std::ranges::transform(times, std::back_inserter(all), [](const auto& round) { return round.second; });
    json["time_us"] = median(all);
  }
  json["cubin"] = judged.trial.cubin.hex();
  json["verifications"] = json["blocks"] = OrderedJson::array();
  for (const VerificationRow& row : judged.verifications) {
    json["verifications"].push_back(cubind::to_json(row.verification()));
  }
  for (const BlockRow& row : judged.blocks) {
    OrderedJson block = cubind::to_json(row.block());
    block["stage"] = row.block().stage() == v1::SampleBlock::FINAL ? "final" : "screen";
    block["index"] = row.block().index();
    json["blocks"].push_back(std::move(block));
  }
  return json;
}

const EntryResources* code_of(const std::string& entry, const ArtifactRow& artifact) {
  const auto named = std::ranges::find(artifact.entries, entry) - artifact.entries.begin();
  for (const EntryResources& one : artifact.resources) {
    if (static_cast<std::size_t>(named) < artifact.entry_symbols.size() &&
        one.entry_symbol() == artifact.entry_symbols[static_cast<std::size_t>(named)]) {
      return &one;
    }
  }
  return nullptr;
}

OrderedJson to_json(const std::vector<SourceFile>& files) {
  OrderedJson json = OrderedJson::array();
  for (const SourceFile& file : files) {
    json.push_back({{"path", file.path}, {"sha256", Digest::of(file.content).hex()}});
  }
  return json;
}

/// The source was not tried: the job says why, unless its launch is none.
OrderedJson refusal_of(const JudgedProblem& problem) {
  const v1::Job& job = problem.ended.job.shown();
  const std::string where = problem.question.key.kernel + " at " + to_string(problem.question.key.problem);
  if (problem.ended.job.state == v1::Job::CANCELLED) {
    throw Error(ErrorCode::Cancelled, where, "the job " + problem.ended.job.id + " was cancelled");
  }
  if (problem.ended.job.state != v1::Job::DONE) {
    throw Error(ErrorCode::FailedPrecondition, where, job.error());
  }
  return {{"outcome", "refused"},
          {"detail", "its launch is not valid for this problem: check grid, block and shared bytes"}};
}

/// The inputs that no launch of the trial reads, as far as its code tells.
std::set<std::string> unread_inputs(StoreReader& store, const JudgedProblem& problem, const Judged& judged) {
  std::set<std::string> inputs, loaded;
  const auto artifact = store.artifact_by_cubin(judged.trial.cubin);
  const PlanTemplate plan =
      problem.question.spec->plan_template(problem.question.key.problem, judged.trial.configuration);
  for (const LaunchTemplate& launch : plan.launches) {
    const EntryResources* code = artifact ? code_of(launch.entry, *artifact) : nullptr;
    std::uint32_t number = 0;
    for (const ParameterTemplate& parameter : launch.parameters) {
      if (parameter.source == ParameterSource::Symbol) {
        continue;
      }
      const bool may_load = !code || !code->loads_known() || std::ranges::count(code->loaded(), number) > 0;
      number += 1;
      if (parameter.role == Role::In) {
        (may_load ? loaded : inputs).insert(parameter.name);
      }
    }
  }
  std::erase_if(inputs, [&](const std::string& input) { return loaded.contains(input); });
  return inputs;
}

/// The first input that the baseline reads and the source does not; empty: none.
std::string ignored_input(StoreReader& store, const JudgedProblem& problem, const Judged& source,
                          const Judged& baseline) {
  const std::set<std::string> of_baseline = unread_inputs(store, problem, baseline);
  for (const std::string& input : unread_inputs(store, problem, source)) {
    if (!of_baseline.contains(input)) {
      return input;
    }
  }
  return {};
}

/// Looks further at a source that was right, whose gains on both sets of inputs are in `json`.
void doubt(StoreReader& store, const JudgedProblem& problem, const Judged& source, const Judged& baseline,
           OrderedJson& json) {
  const auto is_stable = [](const VerificationRow& row) { return row.verification().same_bits(); };
  const auto conclude = [&](const char* outcome, const std::string& detail) {
    json["outcome"] = outcome;
    json["detail"] = detail;
  };
  if (source.trial.header().fault_count() > 0) {
    return conclude("unreproducible", "a launch failed, another one in a new process did not");
  }
  if (problem.is_deterministic && !std::ranges::all_of(source.verifications, is_stable)) {
    return conclude("unreproducible", "launches on the same inputs gave other bits");
  }
  if (const std::string input = ignored_input(store, problem, source, baseline); !input.empty()) {
    return conclude("suspect", "its code never reads the input " + input + ", which the baseline's does");
  }
  const auto same = gain_of(source, baseline, Rounds::SameInputs);
  const auto changed = gain_of(source, baseline, Rounds::ChangedInputs);
  if (!same || !changed) {
    return;
  }
  json["gain_same_inputs"] = same->ratio;
  json["gain_changed_inputs"] = changed->ratio;
  const auto is_more = [](double one, double other) { return one > kMostGainFromEarlier * other; };
  // At clocks that jump between two values either group of rounds has more fast ones, and both have some.
  // A source can have slow rounds whenever it wants: its interval is wide then.
  if ((is_more(same->ratio, changed->ratio) && same->low > changed->high) ||
      (is_more(same->fast_quarter, changed->fast_quarter) &&
       is_more(same->fast_tenth, changed->fast_tenth))) {
    conclude("suspect",
             "it is faster where it may use what earlier launches have left than on new inputs with its "
             "variables as they were at first, compared with the baseline at the same clocks");
  }
}

/// What the tolerance lets pass; empty: little.
std::string note_of(const Judged& source) {
  for (const VerificationRow& row : source.verifications) {
    const double share = std::min(row.verification().blank_share(), 1.0);
    if (share > kMostBlank) {
      return std::to_string(static_cast<int>(100 * share)) + " % of " + row.verification().blank_output() +
             " would pass as 0, or as it was before the launch: the tolerance proves little there";
    }
  }
  return {};
}

OrderedJson judge(StoreReader& store, const JudgedProblem& problem, std::optional<Gain>& gain) {
  const auto baseline = find(store, problem, true);
  const auto source = find(store, problem, false);
  OrderedJson json = {{"problem", to_json(problem.question.key.problem)}};
  if (!source) {
    json.update(refusal_of(problem));
    return json;
  }
  if (!baseline || baseline->trial.outcome != Outcome::Correct) {
    throw Error(ErrorCode::FailedPrecondition,
                problem.question.key.kernel + " at " + to_string(problem.question.key.problem),
                "the baseline fails" + (baseline ? ": " + baseline->trial.header().detail() : ""));
  }
  json["outcome"] = outcome_of(*source);
  if (!source->trial.header().detail().empty()) {
    json["detail"] = source->trial.header().detail();
  }
  gain = source->trial.outcome == Outcome::Correct ? gain_of(*source, *baseline) : std::nullopt;
  if (gain) {
    add(json, *gain);
  }
  if (source->trial.outcome == Outcome::Correct) {
    doubt(store, problem, *source, *baseline, json);
  }
  if (const std::string note = note_of(*source); !note.empty()) {
    json["note"] = note;
  }
  json["seeds_of"] = problem.ended.job.id;
  json["source"] = to_json(*source);
  json["baseline"] = to_json(*baseline);
  json["baseline"]["configuration"] = to_string(problem.baseline);
  return json;
}

void describe(OrderedJson& verdict, const JudgedProblem& one, StoreReader& store) {
  const RecordQuestion& asked = one.question.key;
  verdict["kernel"] = asked.kernel;
  verdict["device"] = one.question.device.label;
  add_device_facts(verdict["device_facts"] = OrderedJson::object(), one.question.device.facts);
  if (const auto trial = find(store, one, true)) {
    verdict["driver"] = trial->trial.driver.version;
    const ToolchainIdentity& toolchain = trial->trial.toolchain;
    verdict["toolchain"] = toolchain.name;
    verdict["toolchain_sha256"] = {{"nvrtc", toolchain.nvrtc.hex()},
                                   {"builtins", toolchain.builtins.hex()},
                                   {"headers", toolchain.headers.hex()}};
    verdict["architecture"] = trial->trial.fact.architecture();
  }
  verdict["policy"] = to_string(asked.policy);
  verdict["namespace"] = asked.name_space;
  verdict["judged_at"] = one.ended.job.shown().finished_at();
}

}  // namespace

OrderedJson verdict_of(StoreReader& store, const JudgedFiles& files,
                       const std::vector<JudgedProblem>& problems) {
  OrderedJson judged = OrderedJson::array();
  std::size_t worst = 0, timed = 0;
  Gain logs{0, 0, 0};
  for (const JudgedProblem& problem : problems) {
    std::optional<Gain> gain;
    judged.push_back(judge(store, problem, gain));
    const auto outcome = judged.back()["outcome"].get<std::string>();
    worst = std::max<std::size_t>(worst, std::ranges::find(kOutcomes, outcome) - kOutcomes.begin());
    if (gain) {
      ++timed;
      logs = {logs.ratio + std::log(gain->ratio), logs.low + std::log(gain->low),
              logs.high + std::log(gain->high)};
    }
  }
  OrderedJson verdict = {{"format", "cubind-verdict/1"}, {"outcome", kOutcomes.at(worst)}};
  if (timed == problems.size()) {
    const auto mean = [&](double sum) { return std::exp(sum / static_cast<double>(timed)); };
    add(verdict, {mean(logs.ratio), mean(logs.low), mean(logs.high)});
  }
  verdict["task"] = {{"name", files.task},
                     {"from", files.is_callers ? "caller" : "daemon"},
                     {"files", to_json(files.task_files)}};
  verdict["source"] = to_json(files.source_files);
  describe(verdict, problems.front(), store);
  verdict["problems"] = std::move(judged);
  return verdict;
}

}  // namespace cubind
