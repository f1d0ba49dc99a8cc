#include "client/web/pages.hpp"

#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "base/text.hpp"
#include "client/cubindctl/answers/own_terms.hpp"
#include "client/cubindctl/report/report_commands.hpp"
#include "client/cubindctl/terminal/json_output.hpp"
#include "client/cubindctl/terminal/text_table.hpp"
#include "client/cubindctl/tune/progress.hpp"
#include "client/web/terms.hpp"

namespace cubind::web {
namespace {

// What a job does in a stage.
const std::map<std::string, std::string>& stage_texts() {
  static const std::map<std::string, std::string> kTexts{
      {"compiling", "waits for configurations to be compiled"},
      {"opening", "starts a process on the GPU and fills the buffers"},
      {"screening", "times each configuration a few times"},
      {"verifying", "compares results with the reference's"},
      {"finalists", "times the fastest in turns"},
      {"choosing", "compares what was timed, and proposes what to try next"},
      {"commit", "waits until results are stored"},
      {"waiting_for_idle_gpu", "waits until others leave the GPU"}};
  return kTexts;
}

struct StageShare {
  std::string name;
  std::string stage;  // names its colour
  double ms = 0;
};

// Longest first. What no stage of a tuning has taken is its start, the time between leases, and leases that
// were lost.
std::vector<StageShare> stages_of(const v1::Job& job) {
  std::vector<StageShare> stages;
  double rest = job.elapsed_ms();
  for (const v1::StageTime& stage : job.stages()) {
    stages.push_back({stage.stage(), stage.stage(), stage.ms()});
    rest -= stage.ms();
  }
  if (is_running(job)) {  // the stages of its lease come at the end
    rest = 0;
  }
  if (rest > 1 && job.kind() == v1::Job::COMPILE_WINNER) {
    stages.push_back({"compiling", "compiling", rest});
  } else if (rest > 1) {
    stages.push_back({"starting or interrupted", "other", rest});
  }
  std::ranges::stable_sort(stages, std::ranges::greater(), &StageShare::ms);
  return stages;
}

std::string percent_text(double share) {
  if (share > 0 && share < 0.005) {
    return "< 1\u00a0%";
  }
  return ctl::fixed(100 * share, 0) + "\u00a0%";
}

Cell stage_cell(const v1::Job& job) {
  const std::vector<StageShare> stages = stages_of(job);
  if (stages.empty() || job.elapsed_ms() <= 0) {
    return {"-"};
  }
  const double share = stages.front().ms / job.elapsed_ms();
  return {.text = stages.front().name + " " + percent_text(share),
          .share = share,
          .colour = "stage-" + stages.front().stage};
}

std::string summary_of(const v1::Job& job) {
  const std::vector<StageShare> times = stages_of(job);
  return job.kernel() + " " + problem_text(job.problem()) + " on " + job.device() + ": " +
         ctl::state_name(job.state()) + ", " + duration_text(job.elapsed_ms() / 1000) + ", " +
         std::to_string(job.configurations_done()) + " of " + counted(job.configurations(), "configuration") +
         ", " + counted(job.nvrtc_calls(), "compile") + "." +
         (times.empty() || job.elapsed_ms() <= 0
              ? ""
              : " Most of the time, " + percent_text(times.front().ms / job.elapsed_ms()) +
                    ", went to: " + times.front().name + ".");
}

Grid stages_table(const v1::Job& job) {
  Grid table{{{"stage"}, {"seconds", true}, {"share"}, {"what the job does"}},
             {},
             "It tells its stages and outcomes when it ends."};
  for (const StageShare& stage : stages_of(job)) {
    const double share = stage.ms / std::max(1.0, job.elapsed_ms());
    const auto text = stage_texts().find(stage.stage);
    table.rows.push_back({{stage.name},
                          number_cell(stage.ms / 1000, 3),
                          {.text = percent_text(share), .share = share, .colour = "stage-" + stage.stage},
                          {text == stage_texts().end() ? "-" : text->second}});
  }
  return table;
}

Grid outcomes_table(const v1::Job& job) {
  Grid table{
      {{"outcome"}, {"configurations", true}}, {}, is_running(job) ? "" : "No configuration has been tried."};
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
    const std::string cut = cut_utf8(line, 200);
    parts.push_back(cut + (cut.size() < line.size() ? "…" : ""));
  }
  return ctl::remarks_of(parts);
}

struct Coverage {
  std::uint64_t own = 0, shipped = 0, wanted = 0, asked = 0, failed = 0;
};

std::map<std::string, Coverage> coverage_of(const Snapshot& snapshot) {
  std::map<std::string, Coverage> kernels;
  for (const v1::ListedRecord& record : *snapshot.records.list) {
    Coverage& kernel = kernels[record.kernel()];
    ++(record.provenance().evidence() == v1::SHIPPED ? kernel.shipped : kernel.own);
  }
  for (const v1::Want& want : snapshot.wanted.wants()) {
    Coverage& kernel = kernels[want.kernel()];
    ++kernel.wanted;
    kernel.asked += want.count();
  }
  for (const v1::Job& job : snapshot.jobs) {
    kernels[job.kernel()].failed += job.state() == v1::Job::FAILED ? 1 : 0;
  }
  return kernels;
}

// `kernels` has the most asked one first.
std::string advice_of(const Grid& kernels, const v1::ListWantedReply& wanted) {
  const auto most = [&](std::size_t column) {
    return kernels.rows.empty() ? 0 : static_cast<std::uint64_t>(*kernels.rows.front()[column].number);
  };
  if (most(2) == 0) {
    return "None: each problem that was asked for has a record.";
  }
  const std::string kernel = kernels.rows.front()[0].text;
  const auto want = std::ranges::find_if(
      wanted.wants(), [&](const v1::Want& one) { return one.kernel() == kernel && !one.obstacle().empty(); });
  return kernel + ": " + counted(most(2), "question") + " for " + counted(most(3), "problem") +
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
              {"age", true},
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
  return {"Which jobs ran, and where did their time go?", "cubindctl jobs --all", {std::move(table)}};
}

View job_page(const Snapshot& snapshot, const std::string& id) {
  const auto job = std::ranges::find(snapshot.jobs, id, &v1::Job::id);
  if (job == snapshot.jobs.end()) {
    throw Error(ErrorCode::NotFound, "job " + id,
                "does not exist: the daemon keeps jobs for 30 days, and those of records in force");
  }
  View view{is_running(*job)                  ? "How far is this job, and what takes its time?"
            : job->state() == v1::Job::FAILED ? "Why did this job fail, and what took its time?"
                                              : "What took this job's time?",
            "cubindctl jobs show " + ctl::shell_word(id),
            {Sentence{summary_of(*job)}}};
  const std::string detail = ctl::detail_of(*job);
  if (is_running(*job)) {
    view.blocks.emplace_back(Grid{{{"now"}, {"configurations"}, {"left", true}},
                                  {{{detail.empty() ? "-" : detail}, progress_cell(*job), {rest_of(*job)}}},
                                  ""});
  } else if (!detail.empty()) {
    view.blocks.emplace_back(
        Grid{{{job->state() == v1::Job::FAILED ? "error" : "detail"}}, {{{detail}}}, ""});
  }
  view.blocks.emplace_back(stages_table(*job));
  if (job->kind() == v1::Job::TUNE) {
    view.blocks.insert(view.blocks.end(), {outcomes_table(*job),
                                           Sentence{"Its trials: best time so far, tunables, limit, failures",
                                                    "/report?job=" + url_encoded(id)}});
  }
  return view;
}

View kernels_page(const Snapshot& snapshot) {
  Grid table{{{"kernel"},
              {"problems with a record"},
              {"unanswered questions", true},
              {"problems without a record", true},
              {"records of its own", true},
              {"records that came with cubind", true},
              {"failed jobs", true},
              {"stability"},
              {"audit"}},
             {},
             "No kernel has a record, a job or an unanswered question.",
             true};
  for (const auto& [kernel, of] : coverage_of(snapshot)) {
    const double covered = static_cast<double>(of.own + of.shipped),
                 all = covered + static_cast<double>(of.wanted);
    Cell share{all == 0 ? "-" : percent_text(covered / all), covered / std::max(1.0, all)};
    share.share = share.number;
    table.rows.push_back({kernel_cell(kernel),
                          std::move(share),
                          count_cell(of.asked),
                          count_cell(of.wanted),
                          count_cell(of.own),
                          count_cell(of.shipped),
                          count_cell(of.failed),
                          {.text = "stability", .link = "/stability?kernel=" + url_encoded(kernel)},
                          {.text = "audit", .link = "/audit?kernel=" + url_encoded(kernel)}});
  }
  std::ranges::stable_sort(table.rows, std::ranges::greater(),
                           [](const Row& row) { return row[2].number.value_or(0); });
  return {
      "Which kernel to tune next?",
      "cubindctl wanted",
      {Sentence{advice_of(table, snapshot.wanted)}, Sentence{snapshot.records.missing}, std::move(table)}};
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
          {Sentence{"`cubindctl tune --wanted` measures the most wanted problems."}, std::move(table)}};
}

}  // namespace cubind::web
