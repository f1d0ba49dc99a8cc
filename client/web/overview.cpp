// The first page.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/text.hpp"
#include "client/cubindctl/answers/stored_trials.hpp"
#include "client/cubindctl/report/report_commands.hpp"
#include "client/cubindctl/terminal/json_output.hpp"
#include "client/cubindctl/terminal/text_table.hpp"
#include "client/cubindctl/tune/progress.hpp"
#include "client/web/pages.hpp"
#include "client/web/terms.hpp"
#include "plan/judged_name.hpp"

namespace cubind::web {
namespace {

constexpr std::size_t kShortList = 12;
constexpr std::size_t kMostCauseBytes = 400;

/// Why something is not used, and what mends it.
struct Cause {
  std::uint64_t count = 0;
  std::string unit;  // "question", "job"
  std::string why;
  std::string remedy;
};

using Causes = std::vector<Cause>;

std::string remedy_of(std::string_view obstacle, const std::string& address) {
  if (obstacle.empty()) {
    return "`cubindctl tune --wanted`";
  }
  if (!obstacle.starts_with("no agent offers")) {
    return "Mend that, then `cubindctl tune --wanted`";
  }
  const bool is_of_this_machine = address.starts_with("unix:");
  return (is_of_this_machine ? "Let the daemon listen, `cubind --listen HOST:PORT`, and start" : "Start") +
         std::string(" an agent on a machine that has one: `cubind-agent --address ") +
         (is_of_this_machine ? "tls://HOST:PORT" : ctl::shell_word(address)) + "`";
}

// Questions that no record answers, by what keeps a job from measuring them, else by kernel.
void add_wants(Causes& causes, const Snapshot& snapshot) {
  struct Group {
    std::uint64_t asked = 0, problems = 0;
    std::set<std::string> kernels;
  };
  std::map<std::tuple<std::string, std::string, std::string>, Group> groups;
  for (const v1::Want& want : snapshot.wanted.wants()) {
    Group& group = groups[{want.obstacle(), want.device(), want.obstacle().empty() ? want.kernel() : ""}];
    group.asked += want.count();
    ++group.problems;
    group.kernels.insert(want.kernel());
  }
  for (const auto& [key, group] : groups) {
    const auto& [obstacle, device, kernel] = key;
    causes.push_back({group.asked, "question",
                      cut_utf8(join(group.kernels, ", "), kMostCauseBytes) + " on " + device + ": " +
                          counted(group.problems, "problem") + " asked for and not measured; " +
                          (obstacle.empty() ? "no job was started" : obstacle),
                      remedy_of(obstacle, snapshot.address)});
  }
}

// Problems whose latest job failed, by the beginning of the error.
void add_failures(Causes& causes, const Snapshot& snapshot) {
  std::map<std::string, const v1::Job*> latest;
  for (const v1::Job& job : snapshot.jobs) {
    if (job.kind() == v1::Job::TUNE && !is_judged(job.kernel()) &&
        (job.state() == v1::Job::DONE || job.state() == v1::Job::FAILED)) {
      latest[job.kernel() + "\n" + job.problem().SerializeAsString() + job.device_class() +
             job.policy().SerializeAsString() + job.numerics().SerializeAsString() + "\n" +
             job.namespace_()] = &job;
    }
  }
  std::map<std::pair<std::string, std::string>, Cause> groups;
  for (const auto& [question, job] : latest) {
    if (job->state() != v1::Job::FAILED) {
      continue;
    }
    const std::string error = job->error().substr(0, job->error().find('\n'));
    Cause& cause = groups[{job->kernel(), error}];
    ++cause.count;
    cause.unit = "failed job";
    cause.why = job->kernel() + ": " + cut_utf8(error, kMostCauseBytes);
    cause.remedy = "Mend what the error says, then tune again: `" +
                   ctl::tune_command(ctl::question_of(*job), job->device(), false) + "`";
  }
  for (auto& [group, cause] : groups) {
    causes.push_back(std::move(cause));
  }
}

// Winners that lose to the library, which an operator then calls.
void add_losses(Causes& causes, const Snapshot& snapshot) {
  std::map<std::string, Cause> groups;
  for (const v1::ListedRecord& record : *snapshot.records.list) {
    const auto& compared = record.provenance().over_library();
    if (compared.empty() || compared.rbegin()->gain_high() >= 1) {
      continue;
    }
    Cause& cause = groups[record.kernel()];
    ++cause.count;
    cause.unit = "record";
    cause.why =
        record.kernel() + ": slower than " + compared.rbegin()->library() + ", which is called instead";
    cause.remedy = "`cubindctl tune " + ctl::shell_word(record.kernel()) + " --problem " +
                   ctl::shell_word(problem_text(record.provenance().measured_problem())) + " --retune`";
  }
  for (auto& [kernel, cause] : groups) {
    causes.push_back(std::move(cause));
  }
}

void add_states(Causes& causes, const v1::GetStatusReply& status) {
  for (const std::string& reason : status.no_device_because()) {
    causes.push_back({1, "agent", "An agent offers no GPU: " + reason, "`cubindctl status`"});
  }
  for (const std::string& error : status.kernel_errors()) {
    causes.push_back(
        {1, "kernel spec", cut_utf8(error, kMostCauseBytes),
         "`cubindctl kernels check " + ctl::shell_word(error.substr(0, error.find_first_of(" :"))) + "`"});
  }
  if (status.read_only()) {
    causes.push_back(
        {1, "store", "Nothing new is stored: " + status.read_only_reason(), "`cubindctl status`"});
  }
  if (std::ranges::none_of(status.devices(), &v1::DeviceClass::offered)) {
    causes.push_back({1, "daemon", "No agent offers a GPU: nothing is measured", "`cubindctl devices`"});
  }
}

Grid causes_table(const Snapshot& snapshot) {
  Causes causes;
  add_wants(causes, snapshot);
  add_failures(causes, snapshot);
  add_losses(causes, snapshot);
  add_states(causes, snapshot.status);
  std::ranges::stable_sort(causes, std::ranges::greater(), &Cause::count);
  Grid table{{{"how often"}, {"why"}, {"what to do"}},
             {},
             "Everything that was asked for is answered by a measured winner."};
  for (const Cause& cause : causes) {
    if (table.rows.size() == kShortList) {
      break;
    }
    table.rows.push_back(
        {{replaced(counted(cause.count, cause.unit), " ", "\u00a0")}, {cause.why}, {cause.remedy}});
  }
  return table;
}

Grid running_table(const Snapshot& snapshot) {
  Grid table{{{"job"},
              {"kernel"},
              {"problem"},
              {"device"},
              {"state"},
              {"configurations"},
              {"running for", true},
              {"left", true}},
             {},
             "No job is queued or running."};
  for (const v1::Job& job : snapshot.jobs) {
    if (!is_running(job) || table.rows.size() == kShortList) {
      continue;
    }
    const std::string detail = ctl::detail_of(job);
    table.rows.push_back({job_cell(job),
                          kernel_cell(job.kernel()),
                          {problem_text(job.problem())},
                          {job.device()},
                          {ctl::state_name(job.state()) + (detail.empty() ? "" : ": " + detail)},
                          progress_cell(job),
                          {duration_text(job.elapsed_ms() / 1000)},
                          {rest_of(job)}});
  }
  return table;
}

std::string state_text(const v1::DeviceClass& device, const Snapshot& snapshot) {
  if (device.state() != "waiting_for_idle_gpu") {
    return device.state();
  }
  const auto job = std::ranges::find_if(snapshot.jobs, [&](const v1::Job& one) {
    return one.state() == v1::Job::WAITING_FOR_IDLE_GPU && one.device() == device.label();
  });
  return "used by others" + (job == snapshot.jobs.end() ? "" : ": " + job->note());
}

Cell temperature_cell(const v1::DeviceClass& device) {
  if (device.temperature_c() == 0) {
    return {"-"};
  }
  return {std::to_string(device.temperature_c()) + " °C" +
          (device.throttled() ? ", throttled by heat or hardware" : "")};
}

Grid devices_table(const Snapshot& snapshot) {
  Grid table{
      {{"GPU"}, {"now"}, {"last samples at"}, {"may tune when"}, {"driver"}, {"agent"}, {"records", true}},
      {},
      "No agent offers a GPU."};
  for (const v1::DeviceClass& device : snapshot.status.devices()) {
    if (device.offered()) {
      table.rows.push_back({{device.label()},
                            {state_text(device, snapshot)},
                            temperature_cell(device),
                            {device.consent()},
                            {device.driver().version()},
                            {device.agent()},
                            count_cell(device.records())});
    }
  }
  return table;
}

std::string saved_text(const v1::Savings& saved) {
  if (saved.answers() == 0) {
    return "No process has been given a cubin without waiting for its work yet.";
  }
  return "Since " + replaced(saved.since().substr(0, 16), "T", " ") + " UTC, processes were spared " +
         duration_text(saved.compile_ms() / 1000) + " of compiling and " +
         duration_text(saved.tuning_ms() / 1000) +
         " of tuning, summed over each process that would have waited. These are the measured times of the "
         "same work where it was done, for " +
         std::to_string(saved.timed()) + " of " + counted(saved.answers(), "answer") +
         ". An answer counts if it gave a process a cubin that it lacked, with a record or without. Work "
         "whose time "
         "is not known counts as 0.";
}

Grid pinned_table(const Snapshot& snapshot) {
  Grid table{{{"training job"},
              {"namespace"},
              {"processes that asked", true},
              {"generation", true},
              {"generations behind", true},
              {"pinned", true}},
             {},
             "No training job has pinned a generation: a question with a job's name does."};
  const std::uint64_t newest = snapshot.status.generation().number();
  for (const v1::PinnedJob& job : snapshot.status.pinned()) {
    if (table.rows.size() < kShortList) {
      table.rows.push_back({{job.job()},
                            {job.namespace_().empty() ? "-" : job.namespace_()},
                            job.processes() == 0 ? Cell{"-"} : count_cell(job.processes()),
                            count_cell(job.generation()),
                            count_cell(newest - std::min(newest, job.generation())),
                            age_cell(job.pinned_at(), snapshot.read_at)});
    }
  }
  return table;
}

std::string share_text(std::uint64_t part, std::uint64_t all) {
  return all == 0 ? "none was asked"
                  : ctl::fixed(100.0 * static_cast<double>(part) / static_cast<double>(all), 1) + "\u00a0%";
}

}  // namespace

View overview(const Snapshot& snapshot) {
  const v1::GetStatusReply& status = snapshot.status;
  const std::uint64_t asked = status.hits() + status.misses();
  return {
      "What did cubind save, what is not used, and why?",
      "cubindctl status",
      {Sentence{
           "A record is the fastest measured configuration of a kernel for a problem on a GPU. Since the "
           "daemon started " +
           duration_text(static_cast<double>(status.uptime_ms()) / 1000) + " ago, a record answered " +
           std::to_string(status.hits()) + " of " + counted(asked, "question") + " at once (" +
           share_text(status.hits(), asked) + "). It has " +
           counted(status.records() - status.shipped_records(), "record") + " of its own and " +
           std::to_string(status.shipped_records()) + " that came with cubind."},
       Heading{"What was saved?"}, Sentence{saved_text(status.saved())},
       Heading{"What is not used, and why?"},
       Sentence{"Questions that no record answers, jobs that failed, and winners that lose to a library."},
       causes_table(snapshot), Heading{"What runs now?"}, running_table(snapshot),
       Heading{"Who runs which generation?"},
       Sentence{"Each change of the records makes a new generation; the newest is " +
                std::to_string(status.generation().number()) +
                ". A training job stays at the one in which it asked first, so that all its ranks launch the "
                "same kernels: records that are newer are left to its next run on purpose, and are not "
                "listed above."},
       pinned_table(snapshot), Heading{"What do the GPUs do?"}, devices_table(snapshot),
       Sentence{counted(status.jobs_running(), "job") + " running, " + std::to_string(status.jobs_queued()) +
                " queued, " + counted(status.agents(), "agent") +
                " connected. `cubindctl jobs --watch JOB` follows a job."}}};
}

}  // namespace cubind::web
