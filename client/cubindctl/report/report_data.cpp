#include "client/cubindctl/report/report_data.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/text.hpp"
#include "base/version.hpp"
#include "client/cubindctl/answers/comparison_output.hpp"
#include "client/cubindctl/answers/explanation_output.hpp"
#include "client/cubindctl/answers/stored_trials.hpp"
#include "client/cubindctl/reply_json.hpp"
#include "client/cubindctl/report/report_commands.hpp"
#include "plan/facts/fact_json.hpp"

namespace cubind::ctl {
namespace {

ExplainedQuestion asked_of(const TableContext& context, const std::string& numerics = "tolerance",
                           const std::string& name_space = {}) {
  return {context.kernel, context.problem, context.policy, numerics, name_space, context.device_class};
}

// Trials know no numerics and no namespace.
bool same_trials(const ExplainedQuestion& a, const ExplainedQuestion& b) {
  return a.kernel == b.kernel && a.problem == b.problem && a.policy == b.policy &&
         a.device_class == b.device_class;
}

OutputJson device_json(const TableDevice& device) {
  OutputJson json = {{"label", device.label}};
  add_device_facts(json, device.facts, DeviceFacts::kMaxSmMhzFieldNumber);
  json["replayed"] = !device.facts.replay_table().empty();
  return json;
}

class Reporting {
 public:
  explicit Reporting(const ReportInput& input) : input_(input) {
    for (const TableDevice& device : input.table.devices) {
      labels_[device.device_class] = device.label;
    }
  }

  OutputJson run() && {
    add_records();
    add_tunings();
    OutputJson devices = OutputJson::array();
    for (const TableDevice& device : input_.table.devices) {
      devices.push_back(device_json(device));
    }
    OutputJson json = {
        {"created_at", input_.created_at},   {"cubindctl", kVersion},
        {"daemon", input_.status.version()}, {"generation", json_of(input_.status.generation())},
        {"devices", std::move(devices)},     {"records", std::move(records_)},
        {"tunings", std::move(tunings_)},    {"jobs", jobs_json()},
        {"remarks", std::move(remarks_)}};
    if (!input_.kernel.empty()) {
      json["kernel"] = input_.kernel;
    }
    return json;
  }

 private:
  bool is_reported(const ExplainedQuestion& question) const {
    return !input_.question ||
           (same_trials(*input_.question, question) && input_.question->numerics == question.numerics &&
            input_.question->name_space == question.name_space);
  }

  void add_records() {
    for (const TableRecord& record : input_.table.records) {
      const ExplainedQuestion question = asked_of(record.context, record.numerics, record.name_space);
      if (is_reported(question)) {
        indices_[&record] = records_.size();
        records_.push_back(record_json(record, question));
      }
    }
  }

  OutputJson record_json(const TableRecord& record, const ExplainedQuestion& question) const {
    const TableContext& context = record.context;
    OutputJson json = {{"kernel", context.kernel},
                       {"problem", json_of(context.problem)},
                       {"device", labels_.at(context.device_class)},
                       {"policy", context.policy},
                       {"numerics", record.numerics},
                       {"namespace", record.name_space},
                       {"configuration", json_of(context.configuration)}};
    add_fields(json, record.timing);
    json.update(OutputJson{{"evidence", to_string(record.evidence)},
                           {"provisional", record.provisional},
                           {"verified_problems", record.verification.problems_size()},
                           {"driver", context.driver},
                           {"toolchain", context.toolchain.name},
                           {"command", tune_command(question, labels_.at(context.device_class), true)}});
    if (!record.over_library.empty()) {
      json["over_library"] = json_of(record.over_library);
    }
    return json;
  }

  // The questions with trials: those of the records, and those whose tuning has not ended or failed.
  std::vector<ExplainedQuestion> questions() const {
    std::vector<ExplainedQuestion> asked;
    for (const TableRecord& record : input_.table.records) {
      asked.push_back(asked_of(record.context, record.numerics, record.name_space));
    }
    if (input_.question) {
      asked.push_back(*input_.question);
    }
    std::vector<ExplainedQuestion> tuned;
    const auto same = [](const auto& a, const auto& b) {
      return same_trials(a, b) && a.numerics == b.numerics && a.name_space == b.name_space;
    };
    for (const TableTrial& trial : input_.table.trials) {
      const ExplainedQuestion plain = asked_of(trial.context);
      if (!tuned.empty() && same_trials(tuned.back(), plain)) {
        continue;  // a table has the trials of a problem one after the other
      }
      const std::size_t before = tuned.size();
      std::ranges::copy_if(asked, std::back_inserter(tuned), [&](const auto& one) {
        return same_trials(one, plain) &&
               std::ranges::none_of(tuned, [&](const auto& other) { return same(one, other); });
      });
      if (tuned.size() == before &&
          std::ranges::none_of(tuned, [&](const auto& one) { return same_trials(one, plain); })) {
        tuned.push_back(plain);
      }
    }
    std::erase_if(tuned, [&](const ExplainedQuestion& one) { return !is_reported(one); });
    return tuned;
  }

  void add_tunings() {
    remarks_ = input_.remarks;
    if (!input_.spec) {
      return;
    }
    const auto trials = std::ranges::count_if(input_.table.trials, [&](const TableTrial& trial) {
      return !input_.question || same_trials(*input_.question, asked_of(trial.context));
    });
    if (static_cast<std::size_t>(trials) > kMostReportedTrials) {
      remarks_.push_back("the trials are left out: " + std::to_string(trials) +
                         " are more than a page holds (" + std::to_string(kMostReportedTrials) + ")" +
                         (input_.question ? "" : "; `cubindctl report --job ID` shows those of one tuning"));
      return;
    }
    for (const ExplainedQuestion& question : questions()) {
      const Explanation explanation = explain(input_.table, *input_.spec, question);
      add_gain_interval(explanation);
      tunings_.push_back(tuning_json(explanation, question));
    }
  }

  // The default is a finalist: its time over the winner's, in the same rounds.
  void add_gain_interval(const Explanation& explanation) {
    const auto record = indices_.find(explanation.record);
    for (const ExplainedFinalist& finalist : explanation.finalists) {
      if (record != indices_.end() && finalist.to_winner && explanation.timed[finalist.trial].is_default) {
        records_[record->second]["gain_low"] = finalist.to_winner->interval.low;
        records_[record->second]["gain_high"] = finalist.to_winner->interval.high;
      }
    }
  }

  OutputJson tuning_json(const Explanation& explanation, const ExplainedQuestion& question) const {
    OutputJson json = json_of(explanation, question, explanation.timed.size());
    json["command"] = tune_command(question, explanation.device, true);
    for (std::size_t i = 0; i < explanation.failed.size(); ++i) {
      OutputJson& failed = json["failed"][i];
      const TableTrial& trial = *explanation.failed[i];
      failed["message"] = cut_utf8(trial.header.detail(), kMostMessageBytes);
      failed["command"] = retry_command(question, explanation.device, trial.context.configuration);
    }
    return json;
  }

  OutputJson jobs_json() const {
    OutputJson jobs = OutputJson::array();
    for (const v1::Job& job : input_.jobs) {
      OutputJson json = json_of(job);
      if (job.state() == v1::Job::FAILED) {
        json["command"] = tune_command(question_of(job), job.device(), false);
      }
      jobs.push_back(std::move(json));
    }
    return jobs;
  }

  const ReportInput& input_;
  std::map<Digest, std::string> labels_;
  std::map<const TableRecord*, std::size_t> indices_;  // in records_
  OutputJson records_ = OutputJson::array();
  OutputJson tunings_ = OutputJson::array();
  std::vector<std::string> remarks_;
};

}  // namespace

OutputJson report_data(const ReportInput& input) { return Reporting(input).run(); }

}  // namespace cubind::ctl
