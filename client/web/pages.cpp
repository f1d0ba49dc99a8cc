#include "client/web/pages.hpp"

#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "base/text.hpp"
#include "client/cubindctl/answers/own_terms.hpp"
#include "client/cubindctl/answers/stored_trials.hpp"
#include "client/cubindctl/report/report_commands.hpp"
#include "client/cubindctl/terminal/json_output.hpp"
#include "client/cubindctl/terminal/text_table.hpp"
#include "client/cubindctl/tune/progress.hpp"
#include "client/web/record_pages.hpp"
#include "client/web/terms.hpp"
#include "plan/judged_name.hpp"

namespace cubind::web {
namespace {

constexpr std::size_t kMostDetailBytes = 600;  // in a row; a job's page has all

// What a job does in a stage; empty: it is none.
std::string stage_text(const std::string& stage) {
  static const std::map<std::string, std::string> kTexts{
      {"compiling", "waits for configurations to be compiled"},
      {"opening", "starts a process on the GPU and fills the buffers"},
      {"screening", "times each configuration a few times"},
      {"verifying", "compares results with the reference's"},
      {"finalists", "times the fastest in turns"},
      {"choosing", "compares what was timed, and proposes what to try next"},
      {"commit", "waits until results are stored"},
      {"waiting_for_idle_gpu", "waits until others leave the GPU"},
      {"other", "starts, or waits between two leases"}};
  const auto text = kTexts.find(stage);
  return text == kTexts.end() ? "" : text->second;
}

// Longest first. What no stage has taken is other.
std::vector<v1::StageTime> stages_of(const v1::Job& job) {
  std::vector<v1::StageTime> stages(job.stages().begin(), job.stages().end());
  double rest = job.elapsed_ms();
  for (const v1::StageTime& stage : stages) {
    rest -= stage.ms();
  }
  const bool only_compiles = job.kind() == v1::Job::COMPILE_WINNER;
  if (rest > 1 && (only_compiles ? !is_running(job) : !stages.empty())) {
    v1::StageTime& other = stages.emplace_back();
    other.set_stage(only_compiles ? "compiling" : "other");
    other.set_ms(rest);
  }
  std::ranges::stable_sort(stages, std::ranges::greater(), &v1::StageTime::ms);
  return stages;
}

std::string percent_text(double share) {
  if (share > 0 && share < 0.005) {
    return "< 1\u00a0%";
  }
  return ctl::fixed(100 * share, 0) + "\u00a0%";
}

Cell stage_cell(const v1::Job& job) {
  const std::vector<v1::StageTime> stages = stages_of(job);
  if (stages.empty() || job.elapsed_ms() <= 0) {
    return {is_running(job) && !job.stage().empty() ? "now " + job.stage() : "-"};
  }
  const double share = stages.front().ms() / job.elapsed_ms();
  return {.text = stages.front().stage() + " " + percent_text(share), .share = share};
}

// "25.3 s, 94 % of it compiling, 139 compiles".
std::string time_text(const v1::Job& job) {
  const std::vector<v1::StageTime> stages = stages_of(job);
  std::string text = duration_text(job.elapsed_ms() / 1000);
  if (!stages.empty() && job.elapsed_ms() > 0) {
    text += ", " + percent_text(stages.front().ms() / job.elapsed_ms()) + " of it " + stages.front().stage();
  }
  return text + ", " + counted(job.nvrtc_calls(), "compile");
}

std::string summary_of(const v1::Job& job) {
  std::string text = job.kernel() + " " + problem_text(job.problem()) + " on " + job.device() + ": " +
                     ctl::state_name(job.state()) + ", ";
  if (job.configurations() > 0) {
    text += std::to_string(job.configurations_done()) + " of " +
            counted(job.configurations(), "configuration") +
            (job.max_trials() == job.configurations() ? " (as many trials as were asked for), " : ", ");
  }
  return text + time_text(job) +
         (job.nvrtc_calls() < job.configurations_done() ? " (a cubin that was kept needs none)." : ".");
}

Sentence longest_of(const std::vector<v1::Job>& jobs) {
  const auto job = std::ranges::max_element(jobs, {}, &v1::Job::elapsed_ms);
  if (job == jobs.end()) {
    return {};
  }
  return {"The longest: " + job->kernel() + " " + problem_text(job->problem()) + ", " + time_text(*job),
          job_cell(*job).link};
}

Grid stages_table(const v1::Job& job) {
  Grid table{{{"stage"}, {"seconds", true}, {"share"}, {"what the job does"}}, {}, ""};
  for (const v1::StageTime& stage : stages_of(job)) {
    const double share = stage.ms() / std::max(1.0, job.elapsed_ms());
    table.rows.push_back({{stage.stage()},
                          number_cell(stage.ms() / 1000, 3),
                          {.text = percent_text(share), .share = share},
                          {stage_text(stage.stage())}});
  }
  return table;
}

Grid outcomes_table(const v1::Job& job) {
  Grid table{{{"outcome"}, {"configurations", true}},
             {},
             is_running(job) ? "It tells its outcomes when it ends." : "No configuration has been tried."};
  for (const v1::OutcomeCount& outcome : job.outcomes()) {
    const bool is_slow = outcome.outcome() == v1::UNVERIFIED;
    table.rows.push_back({{ctl::outcome_name(outcome.outcome()) +
                           (is_slow ? ": too slow to win, so its results were not checked" : "")},
                          count_cell(outcome.count())});
  }
  return table;
}

std::string detail_text(const v1::Job& job) {
  std::vector<std::string> parts = ctl::own_terms(job.policy(), job.numerics(), job.namespace_());
  if (std::string detail = ctl::detail_of(job); !detail.empty()) {
    const std::string line = one_line(std::move(detail));
    const std::string cut = cut_utf8(line, kMostDetailBytes);
    parts.push_back(cut + (cut.size() < line.size() ? "…" : ""));
  }
  return ctl::remarks_of(parts);
}

struct Coverage {
  std::uint64_t own = 0, shipped = 0, wanted = 0, asked = 0, failed = 0;
};

std::map<std::string, Coverage> coverage_of(const Snapshot& snapshot) {
  std::map<std::string, Coverage> kernels;
  const std::vector<v1::ListedRecord>& records = *snapshot.records.list;  // sorted by kernel
  auto of = kernels.end();
  for (const v1::ListedRecord& record : records) {
    if (of == kernels.end() || of->first != record.kernel()) {
      of = kernels.try_emplace(record.kernel()).first;
    }
    ++(record.provenance().evidence() == v1::SHIPPED ? of->second.shipped : of->second.own);
  }
  for (const v1::Want& want : snapshot.wanted.wants()) {
    Coverage& kernel = kernels[want.kernel()];
    ++kernel.wanted;
    kernel.asked += want.count();
  }
  for (const v1::Job& job : snapshot.jobs) {
    if (!is_judged(job.kernel())) {
      kernels[job.kernel()].failed += job.state() == v1::Job::FAILED ? 1 : 0;
    }
  }
  return kernels;
}

std::string advice_of(const std::map<std::string, Coverage>& kernels, const v1::ListWantedReply& wanted) {
  const auto most = std::ranges::max_element(kernels, {}, [](const auto& one) { return one.second.asked; });
  if (most == kernels.end() || most->second.asked == 0) {
    return "None: each problem that was asked for has a record.";
  }
  const auto& [kernel, of] = *most;
  const auto want = std::ranges::find_if(wanted.wants(), [&](const v1::Want& one) {
    return one.kernel() == most->first && !one.obstacle().empty();
  });
  return kernel + ": " + counted(of.asked, "question") + " for " + counted(of.wanted, "problem") +
         " found no record. `cubindctl tune " + ctl::shell_word(kernel) + " --wanted` measures them" +
         (want == wanted.wants().end() ? "." : ", but not now: " + want->obstacle() + ".");
}

}  // namespace

View jobs_page(const Snapshot& snapshot) {
  Grid table{{{"job"},
              {"kernel"},
              {"state"},
              {"seconds", true},
              {"most time in"},
              {"problem"},
              {"device"},
              {"created", true},
              {"kind"},
              {"detail"}},
             {},
             "No job has run: `cubindctl tune` starts one.",
             true};
  for (auto job = snapshot.jobs.rbegin(); job != snapshot.jobs.rend(); ++job) {
    table.rows.push_back({job_cell(*job),
                          kernel_cell(job->kernel()),
                          {ctl::state_name(job->state())},
                          number_cell(job->elapsed_ms() / 1000, 1),
                          stage_cell(*job),
                          {problem_text(job->problem())},
                          {job->device()},
                          age_cell(job->created_at(), snapshot.read_at),
                          {job->kind() == v1::Job::TUNE ? "tune" : "compile"},
                          {detail_text(*job)}});
  }
  return {"Which jobs ran, and where did their time go?",
          "cubindctl jobs --all",
          {longest_of(snapshot.jobs), std::move(table)}};
}

View job_page(const Snapshot& snapshot, const std::string& id) {
  const auto job = std::ranges::find(snapshot.jobs, id, &v1::Job::id);
  if (job == snapshot.jobs.end()) {
    throw Error(ErrorCode::NotFound, "job " + id,
                "does not exist: the daemon keeps jobs for 30 days, and those of records in force");
  }
  View view{is_running(*job)                  ? "How far is this job, and what does it do now?"
            : job->state() == v1::Job::FAILED ? "Why did this job fail?"
                                              : "What took this job's time?",
            "cubindctl jobs show " + ctl::shell_word(id),
            {Sentence{summary_of(*job)}, Sentence{record_text(snapshot, *job)}}};
  const std::string detail = ctl::detail_of(*job);
  if (is_running(*job)) {
    view.blocks.emplace_back(Grid{{{"now"}, {"what the job does"}, {"configurations"}, {"left", true}},
                                  {{{detail}, {stage_text(detail)}, progress_cell(*job), {rest_of(*job)}}},
                                  ""});
  } else if (!detail.empty()) {
    view.blocks.emplace_back(
        Grid{{{job->state() == v1::Job::FAILED ? "error" : "detail"}}, {{{detail}}}, ""});
  }
  if (job->kind() == v1::Job::TUNE && job->state() == v1::Job::FAILED && !is_judged(job->kernel())) {
    view.blocks.emplace_back(Sentence{"When that is mended, tune again: `" +
                                      ctl::tune_command(ctl::question_of(*job), job->device(), false) + "`"});
  }
  Grid stages = stages_table(*job);
  if (job->kind() == v1::Job::TUNE && !stages.rows.empty() && stages.rows.front()[0].text == "compiling") {
    view.blocks.emplace_back(
        Sentence{"More compile workers shorten this: `--compile-jobs` of the daemon or agent, by default one "
                 "per core."});
  }
  view.blocks.emplace_back(std::move(stages));
  if (job->kind() == v1::Job::TUNE) {
    view.blocks.emplace_back(outcomes_table(*job));
  }
  if (job->kind() == v1::Job::TUNE && job->configurations_done() > 0) {
    view.blocks.emplace_back(Sentence{"The report of its trials: best time so far, tunables, limit, failures",
                                      "/report?job=" + url_encoded(id)});
  }
  return view;
}

View kernels_page(const Snapshot& snapshot) {
  Grid table{{{"kernel"},
              {"problems with a record"},
              {"unanswered questions", true},
              {"records of its own", true},
              {"records that came with cubind", true},
              {"failed jobs", true}},
             {},
             "No kernel has a record, a job or an unanswered question.",
             true};
  const std::map<std::string, Coverage> kernels = coverage_of(snapshot);
  for (const auto& [kernel, of] : kernels) {
    const std::uint64_t covered = of.own + of.shipped, all = covered + of.wanted;
    Cell share{all == 0 ? "-" : std::to_string(covered) + " of " + std::to_string(all)};
    share.share = static_cast<double>(covered) / std::max(1.0, static_cast<double>(all));
    table.rows.push_back({kernel_cell(kernel), std::move(share), count_cell(of.asked), count_cell(of.own),
                          count_cell(of.shipped), count_cell(of.failed)});
  }
  std::ranges::stable_sort(table.rows, std::ranges::greater(),
                           [](const Row& row) { return row[2].number.value_or(0); });
  return {
      "Which kernel to tune next?",
      "cubindctl wanted",
      {Sentence{advice_of(kernels, snapshot.wanted)}, Sentence{snapshot.records.missing}, std::move(table)}};
}

View wanted_page(const Snapshot& snapshot) {
  Grid table{{{"times asked", true}, {"last asked", true}, {"kernel"}, {"problem"}, {"device"}, {"remarks"}},
             {},
             "Nothing is wanted: every asked problem has a record or was given to a job.",
             true};
  for (const v1::Want& want : snapshot.wanted.wants()) {
    std::vector<std::string> remarks = ctl::own_terms(want.policy(), want.numerics(), want.namespace_());
    if (!want.obstacle().empty()) {
      remarks.push_back("not now: " + want.obstacle());
    }
    table.rows.push_back({count_cell(want.count()),
                          age_cell(want.last_at(), snapshot.read_at),
                          kernel_cell(want.kernel()),
                          {problem_text(want.problem())},
                          {want.device()},
                          {ctl::remarks_of(remarks)}});
  }
  return {"What was asked for and is not measured?",
          "cubindctl wanted",
          {Sentence{"`cubindctl tune --wanted` measures the most wanted problems, but not those whose remark "
                    "says why not now."},
           std::move(table)}};
}

}  // namespace cubind::web
