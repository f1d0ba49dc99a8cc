#include "client/cubindctl/answers/explanation_output.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "client/cubindctl/answers/comparison_output.hpp"
#include "client/cubindctl/terminal/text_table.hpp"
#include "plan/facts/fact_json.hpp"

namespace cubind::ctl {
namespace {

std::string or_dash(const std::optional<double>& share, int digits) {
  return share ? percent(*share, digits) : "-";
}

// "1.9 % slower (1.2 to 2.4 %)", of a time over another.
std::string apart(const RoundRatio& ratio) {
  return percent(ratio.ratio - 1, 1) + " slower (" + fixed(100 * (ratio.interval.low - 1), 1) + " to " +
         percent(ratio.interval.high - 1, 1) + ")";
}

const ExplainedTrial& trial_of(const Explanation& explanation, const ExplainedFinalist& finalist) {
  return explanation.timed[finalist.trial];
}

const Configuration& configuration_of(const ExplainedTrial& one) { return one.trial->context.configuration; }

// The closest of the others.
const ExplainedFinalist* runner_up(const Explanation& explanation) {
  const ExplainedFinalist* next = nullptr;
  for (std::size_t i = 0; i < explanation.finalists.size(); ++i) {
    const ExplainedFinalist& one = explanation.finalists[i];
    const bool is_winner = i == explanation.choice->winner;
    if (!is_winner && one.to_winner && (!next || one.to_winner->ratio < next->to_winner->ratio)) {
      next = &one;
    }
  }
  return next;
}

std::string notes_of(const ExplainedTrial& one) {
  std::vector<std::string> notes;
  if (one.is_winner) {
    notes.emplace_back("winner");
  }
  if (one.is_default) {
    notes.emplace_back("default");
  }
  if (one.measured_as) {
    notes.push_back("code of " + to_string(one.measured_as->context.configuration));
  }
  if (one.screened) {
    notes.emplace_back("screened");
  }
  return notes.empty() ? "-" : join(notes, ", ");
}

void print_winner(std::ostream& out, const Explanation& explanation) {
  if (const TableRecord* record = explanation.record) {
    const Timing& timing = record->timing;
    out << "winner " << to_string(record->context.configuration) << "\n  " << fixed(timing.median_us(), 2)
        << " us (" << fixed(timing.low_us(), 2) << " to " << fixed(timing.high_us(), 2) << " at 95 %, "
        << timing.samples() << " samples)";
    if (const auto gain = over_default(timing)) {
      out << ", " << fixed(*gain, 2) << " x the default";
    }
    out << "\n";
    for (const LibraryComparison& comparison : record->over_library) {
      out << "  over library: " << over_library(comparison) << "\n";
    }
  }
  if (const std::string reason = reason_of(explanation); !reason.empty()) {
    out << "  " << reason << "\n";
  }
}

void print_best(std::ostream& out, const Explanation& explanation, std::size_t columns) {
  TextTable table({">TIME_US", ">?SAMPLES", ">ROOFLINE", ">GB/S", ">?TFLOP/S", ">REGISTERS", ">?SHARED_B",
                   ">??SPILLED_B", ">?OCCUPANCY", "??TENSOR_CORES", "NOTE", "CONFIGURATION"});
  for (std::size_t i = 0; i < std::min(kBestTrials, explanation.timed.size()); ++i) {
    const ExplainedTrial& one = explanation.timed[i];
    table.add({fixed(one.time_us, 2), std::to_string(one.samples), or_dash(one.roofline_share, 0),
               one.bytes_per_second ? fixed(*one.bytes_per_second * 1e-9, 0) : "-",
               one.flops_per_second ? fixed(*one.flops_per_second * 1e-12, 2) : "-",
               std::to_string(one.registers), std::to_string(one.shared_bytes),
               std::to_string(one.spilled_bytes), or_dash(one.occupancy, 0), one.tensor_cores ? "yes" : "no",
               notes_of(one), to_string(configuration_of(one))});
  }
  if (!table.empty()) {
    out << "\nthe fastest\n";
    table.print(out, columns, "  ");
  }
}

void print_finalists(std::ostream& out, const Explanation& explanation, std::size_t columns) {
  TextTable table({">?ROUNDS", ">SLOWER", ">FROM", ">TO", "CONFIGURATION"});
  for (const ExplainedFinalist& finalist : explanation.finalists) {
    if (const auto& ratio = finalist.to_winner) {
      table.add({std::to_string(ratio->rounds), percent(ratio->ratio - 1, 2),
                 percent(ratio->interval.low - 1, 2), percent(ratio->interval.high - 1, 2),
                 to_string(configuration_of(trial_of(explanation, finalist)))});
    }
  }
  if (!table.empty()) {
    out << "\nthe finalists, each against the winner in the same rounds (interval at 99 %)\n";
    table.print(out, columns, "  ");
  }
}

void print_tunables(std::ostream& out, const Explanation& explanation, std::size_t columns) {
  TextTable table({">EXPLAINS", "TUNABLE", ">VALUES", ">BEST", ">WORST", ">WORST/BEST"});
  for (const TunableEffect& effect : explanation.tunables) {
    table.add({percent(effect.explained, 0), effect.name, std::to_string(effect.values),
               std::to_string(effect.best_value), std::to_string(effect.worst_value),
               fixed(effect.worst_over_best, 2)});
  }
  if (!table.empty()) {
    out << "\nwhat each tunable explains of the variance, by " << counted(explanation.timed.size(), "trial")
        << "\n";
    table.print(out, columns, "  ");
  }
}

void print_failed(std::ostream& out, const Explanation& explanation, std::size_t columns) {
  TextTable table({"OUTCOME", "CONFIGURATION", "MESSAGE"});
  for (const TableTrial* trial : explanation.failed) {
    table.add({std::string(to_string(trial->outcome)), to_string(trial->context.configuration),
               trial->header.detail().empty() ? "-" : one_line(trial->header.detail())});
  }
  if (!table.empty()) {
    out << "\nfailed\n";
    table.print(out, columns, "  ");
  }
}

OutputJson ratio_json(const RoundRatio& ratio) {
  return {{"ratio", ratio.ratio},
          {"low", ratio.interval.low},
          {"high", ratio.interval.high},
          {"rounds", ratio.rounds}};
}

template <typename Value>
void add_known(OutputJson& json, const char* name, const std::optional<Value>& value) {
  if (value) {
    json[name] = *value;
  }
}

OutputJson trial_json(const ExplainedTrial& one) {
  OutputJson json = {{"configuration", json_of(configuration_of(one))},
                     {"outcome", to_string(one.trial->outcome)},
                     {"time_us", one.time_us},
                     {"samples", one.samples},
                     {"registers", one.registers},
                     {"shared_bytes", one.shared_bytes},
                     {"spilled_bytes", one.spilled_bytes},
                     {"tensor_cores", one.tensor_cores}};
  add_known(json, "occupancy", one.occupancy);
  add_known(json, "bytes_per_second", one.bytes_per_second);
  add_known(json, "flops_per_second", one.flops_per_second);
  add_known(json, "roofline_share", one.roofline_share);
  if (one.judged_against_us > 0) {
    json["judged_against_us"] = one.judged_against_us;
  }
  if (one.measured_as) {
    json["measured_as"] = json_of(one.measured_as->context.configuration);
  }
  json["screened"] = one.screened;
  json["is_default"] = one.is_default;
  json["is_winner"] = one.is_winner;
  add_fields(json, one.trial->header, kFirstTrialFact);
  return json;
}

// What the spec's `work` comes to, and the rates that limit it, as far as they are known.
void add_limits(OutputJson& json, const Explanation& explanation) {
  add_known(json["work"] = OutputJson::object(), "bytes", explanation.work.bytes);
  add_known(json["work"], "flops", explanation.work.flops);
  json["peak"] = OutputJson::object();
  if (explanation.peak.bytes_per_second > 0) {
    json["peak"]["bytes_per_second"] = explanation.peak.bytes_per_second;
  }
  if (explanation.peak.flops_per_second > 0) {
    json["peak"]["flops_per_second"] = explanation.peak.flops_per_second;
  }
}

OutputJson winner_json(const Explanation& explanation) {
  OutputJson json = OutputJson::object();
  if (const TableRecord* record = explanation.record) {
    json["configuration"] = json_of(record->context.configuration);
    add_fields(json, record->timing);
    if (!record->over_library.empty()) {
      json["over_library"] = json_of(record->over_library);
    }
  }
  if (explanation.choice) {
    json["rule"] = explanation.chosen_otherwise ? "otherwise" : to_string(explanation.choice->rule);
    json["tied"] = explanation.choice->tied;
    json["reason"] = reason_of(explanation);
  }
  return json;
}

}  // namespace

std::string reason_of(const Explanation& explanation) {
  if (!explanation.choice) {
    return "";
  }
  const Choice& choice = *explanation.choice;
  const std::string finalists = counted(explanation.finalists.size(), "finalist");
  if (explanation.chosen_otherwise) {
    return "these samples alone would choose " +
           to_string(configuration_of(trial_of(explanation, explanation.finalists[choice.winner]))) +
           ": the previous winner stayed, or the other failed its last check";
  }
  if (choice.rule == ChoiceRule::Fastest) {
    const ExplainedFinalist* next = runner_up(explanation);
    return "the fastest of " + finalists + (next ? "; the next is " + apart(*next->to_winner) : "");
  }
  std::string text = std::to_string(choice.tied) + " of " + finalists +
                     " tie; it won by the rule: " + std::string(to_string(choice.rule));
  if (const auto& ratio = explanation.finalists[choice.winner].to_winner;
      choice.leader != choice.winner && ratio) {
    const double gain = 1 - explanation.finalists[choice.leader].to_winner->ratio;
    text += "; the fastest takes " + percent(gain, 1) + " less time";
  }
  return text;
}

OutputJson json_of(const Explanation& explanation, const ExplainedQuestion& question,
                   std::size_t best_trials) {
  OutputJson best = OutputJson::array(), tunables = OutputJson::array(), failed = OutputJson::array(),
             finalists = OutputJson::array();
  for (std::size_t i = 0; i < std::min(best_trials, explanation.timed.size()); ++i) {
    best.push_back(trial_json(explanation.timed[i]));
  }
  for (const TunableEffect& effect : explanation.tunables) {
    tunables.push_back({{"name", effect.name},
                        {"explained", effect.explained},
                        {"values", effect.values},
                        {"best_value", effect.best_value},
                        {"worst_value", effect.worst_value},
                        {"worst_over_best", effect.worst_over_best}});
  }
  for (const TableTrial* trial : explanation.failed) {
    failed.push_back({{"configuration", json_of(trial->context.configuration)},
                      {"outcome", to_string(trial->outcome)},
                      {"message", trial->header.detail()}});
  }
  for (const ExplainedFinalist& finalist : explanation.finalists) {
    OutputJson one = {{"configuration", json_of(configuration_of(trial_of(explanation, finalist)))}};
    if (finalist.to_winner) {
      one["to_winner"] = ratio_json(*finalist.to_winner);
    }
    finalists.push_back(std::move(one));
  }
  OutputJson json = {{"kernel", question.kernel},          {"problem", json_of(question.problem)},
                     {"device", explanation.device},       {"policy", question.policy},
                     {"numerics", question.numerics},      {"namespace", question.name_space},
                     {"trials", explanation.trials},       {"timed", explanation.timed.size()},
                     {"winner", winner_json(explanation)}, {"best", std::move(best)},
                     {"finalists", std::move(finalists)},  {"tunables", std::move(tunables)},
                     {"failed", std::move(failed)},        {"remarks", explanation.remarks}};
  add_limits(json, explanation);
  return json;
}

void print(std::ostream& out, const Explanation& explanation, const ExplainedQuestion& question,
           std::size_t columns) {
  out << question.kernel << " at " << to_string(question.problem) << " on " << explanation.device << " ("
      << question.policy << "): " << counted(explanation.trials, "trial") << ", " << explanation.timed.size()
      << " timed, " << explanation.failed.size() << " failed\n\n";
  print_winner(out, explanation);
  for (const std::string& remark : explanation.remarks) {
    out << "note: " << remark << "\n";
  }
  print_best(out, explanation, columns);
  print_finalists(out, explanation, columns);
  print_tunables(out, explanation, columns);
  print_failed(out, explanation, columns);
}

}  // namespace cubind::ctl
