// The pages of jobs, kernels, wants and records.
#include "client/web/pages.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/text.hpp"
#include "client/cubindctl/answers/audit.hpp"
#include "client/cubindctl/answers/own_terms.hpp"
#include "client/cubindctl/report/report_commands.hpp"
#include "client/cubindctl/terminal/json_output.hpp"
#include "client/cubindctl/terminal/text_table.hpp"
#include "client/cubindctl/tune/progress.hpp"
#include "client/web/terms.hpp"

namespace cubind::web {
namespace {

struct StageShare {
  std::string stage;
  double ms = 0;
};

// Longest first. What no stage has taken is starting, the time between leases, and leases that were lost.
std::vector<StageShare> stages_of(const v1::Job& job) {
  std::vector<StageShare> stages;
  double rest = job.elapsed_ms();
  for (const v1::StageTime& stage : job.stages()) {
    stages.push_back({stage.stage(), stage.ms()});
    rest -= stage.ms();
  }
  if (rest > 1) {
    stages.push_back({"other", rest});
  }
  std::ranges::stable_sort(stages, std::ranges::greater(), &StageShare::ms);
  return stages;
}

std::string percent_text(double share) { return ctl::fixed(100 * share, 0) + " %"; }

Cell stage_cell(const v1::Job& job) {
  const std::vector<StageShare> stages = stages_of(job);
  if (stages.empty() || job.elapsed_ms() <= 0) {
    return {"-"};
  }
  const double share = stages.front().ms / job.elapsed_ms();
  return {.text = stages.front().stage + " " + percent_text(share),
          .share = share,
          .colour = "stage-" + stages.front().stage};
}

std::string detail_text(const v1::Job& job) {
  std::vector<std::string> parts = ctl::own_terms(job.policy(), job.numerics(), job.namespace_());
  if (std::string detail = ctl::detail_of(job); !detail.empty()) {
    parts.push_back(cut_utf8(one_line(std::move(detail)), 200));
  }
  return ctl::remarks_of(parts);
}

struct Coverage {
  std::uint64_t own = 0, shipped = 0, wanted = 0, asked = 0, failed = 0;
};

std::map<std::string, Coverage> coverage_of(const Snapshot& snapshot) {
  std::map<std::string, Coverage> kernels;
  for (const TableRecord& record : snapshot.records->records) {
    Coverage& kernel = kernels[record.context.kernel];
    ++(record.evidence == Evidence::Shipped ? kernel.shipped : kernel.own);
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

std::string marks_of(const TableRecord& record) {
  std::vector<std::string> marks;
  for (const auto& [name, is_set] :
       {std::pair{"provisional", record.provisional}, std::pair{"throttled", record.timing.throttled()},
        std::pair{"contended", record.timing.contended()}}) {
    if (is_set) {
      marks.emplace_back(name);
    }
  }
  return join(marks, ", ");
}

// Over the library that it was compared with last.
Cell library_gain(const TableRecord& record) {
  if (record.over_library.empty()) {
    return {"-"};
  }
  const v1::LibraryComparison& last = record.over_library.back();
  return {ctl::fixed(last.gain(), 2) + " (" + ctl::fixed(last.gain_low(), 2) + " to " +
              ctl::fixed(last.gain_high(), 2) + ") " + last.library(),
          last.gain()};
}

}  // namespace

View jobs_page(const Snapshot& snapshot) {
  Grid table{{{"job"},
              {"kind"},
              {"state"},
              {"kernel"},
              {"problem"},
              {"device"},
              {"age", true},
              {"seconds", true},
              {"most time in"},
              {"detail"}},
             {},
             "No job has run: `cubindctl tune` starts one.",
             true};
  for (auto job = snapshot.jobs.rbegin(); job != snapshot.jobs.rend(); ++job) {
    table.rows.push_back({job_cell(*job),
                          {job->kind() == v1::Job::TUNE ? "tune" : "compile"},
                          {ctl::state_name(job->state())},
                          kernel_cell(job->kernel()),
                          {problem_text(job->problem())},
                          {job->device()},
                          age_cell(job->created_at(), snapshot.read_at),
                          number_cell(job->elapsed_ms() / 1000, 1),
                          stage_cell(*job),
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
  Grid stages{{{"stage"}, {"seconds", true}, {"share"}}, {}, "It has not spent time in a stage yet."};
  for (const StageShare& stage : stages_of(*job)) {
    const double share = stage.ms / std::max(1.0, job->elapsed_ms());
    stages.rows.push_back({{stage.stage},
                           number_cell(stage.ms / 1000, 3),
                           {.text = percent_text(share), .share = share, .colour = "stage-" + stage.stage}});
  }
  Grid outcomes{{{"outcome"}, {"configurations", true}}, {}, "No configuration has been tried yet."};
  for (const v1::OutcomeCount& outcome : job->outcomes()) {
    outcomes.rows.push_back({{ctl::outcome_name(outcome.outcome())}, count_cell(outcome.count())});
  }
  View view{is_running(*job) ? "How far is this job, and what takes its time?" : "What took this job's time?",
            "cubindctl jobs show " + ctl::shell_word(id),
            {Sentence{job->kernel() + " " + problem_text(job->problem()) + " on " + job->device() + ": " +
                      ctl::state_name(job->state()) + ", " + duration_text(job->elapsed_ms() / 1000) + ", " +
                      std::to_string(job->configurations_done()) + " of " +
                      counted(job->configurations(), "configuration") + ", " +
                      counted(job->nvrtc_calls(), "compile") + "."}}};
  if (const std::string detail = ctl::detail_of(*job); !detail.empty()) {
    view.blocks.emplace_back(Grid{{{"detail"}}, {{{detail}}}, "", false, true});
  }
  view.blocks.insert(view.blocks.end(), {std::move(stages), std::move(outcomes)});
  if (job->kind() == v1::Job::TUNE) {
    view.blocks.emplace_back(Grid{
        {{"its trials"}},
        {{{.text = "best time so far, tunables, limit, failures", .link = "/report?job=" + url_encoded(id)}}},
        ""});
  }
  return view;
}

View kernels_page(const Snapshot& snapshot) {
  Grid table{{{"kernel"},
              {"covered of what was asked"},
              {"asked in vain", true},
              {"problems in vain", true},
              {"own records", true},
              {"shipped records", true},
              {"failed jobs", true},
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
                          {.text = "audit", .link = "/audit?kernel=" + url_encoded(kernel)}});
  }
  std::ranges::stable_sort(table.rows, std::ranges::greater(),
                           [](const Row& row) { return row[2].number.value_or(0); });
  return {"Which kernel to tune next?",
          "cubindctl wanted",
          {Sentence{"The kernel whose unanswered questions were asked most comes first; `cubindctl tune "
                    "--wanted` measures them. Covered are "
                    "problems with a record."},
           std::move(table)}};
}

View wanted_page(const Snapshot& snapshot) {
  Grid table{{{"asked", true}, {"last"}, {"kernel"}, {"problem"}, {"device"}, {"remarks"}},
             {},
             "Nothing is wanted: every asked problem has a record or was given to a job.",
             true};
  for (const v1::Want& want : snapshot.wanted.wants()) {
    std::vector<std::string> remarks = ctl::own_terms(want.policy(), want.numerics(), want.namespace_());
    if (!want.obstacle().empty()) {
      remarks.push_back("not now: " + want.obstacle());
    }
    table.rows.push_back({count_cell(want.count()),
                          {want.last_at()},
                          kernel_cell(want.kernel()),
                          {problem_text(want.problem())},
                          {want.device()},
                          {ctl::remarks_of(remarks)}});
  }
  return {"What was asked for and is not measured?",
          "cubindctl wanted",
          {Sentence{"`cubindctl tune --wanted` measures the most wanted problems."}, std::move(table)}};
}

View records_page(const Snapshot& snapshot) {
  std::map<Digest, std::string> labels;
  for (const TableDevice& device : snapshot.records->devices) {
    labels[device.device_class] = device.label;
  }
  Grid table{{{"kernel"},
              {"problem"},
              {"device"},
              {"time, µs", true},
              {"95 % interval", true},
              {"times the default", true},
              {"times the library", true},
              {"evidence"},
              {"age", true},
              {"marks"},
              {"toolchain"},
              {"winner"}},
             {},
             snapshot.records_missing.empty() ? "No record is stored: `cubindctl tune` makes one."
                                              : snapshot.records_missing,
             true};
  for (const TableRecord& record : snapshot.records->records) {
    const TableContext& context = record.context;
    const v1::Timing& timing = record.timing;
    const double width = (timing.high_us() - timing.low_us()) / std::max(1e-9, timing.median_us());
    table.rows.push_back(
        {kernel_cell(context.kernel),
         {to_string(context.problem)},
         {labels[context.device_class]},
         number_cell(timing.median_us(), 2),
         {ctl::fixed(100 * width, 2) + " %", width},
         timing.has_gain_over_default() ? number_cell(timing.gain_over_default(), 2) : Cell{"-"},
         library_gain(record),
         {std::string(to_string(record.evidence))},
         age_cell(timing.measured_at(), snapshot.read_at),
         {marks_of(record)},
         {context.toolchain.name},
         {to_string(context.configuration)}});
  }
  return {"How fast is each winner, next to the default and the library?",
          "cubindctl report --all --shipped --json",
          {std::move(table)}};
}

View audit_page(const std::string& address, const std::string& kernel) {
  ctl::AuditOptions options;
  options.kernel = kernel;
  options.shipped = true;
  ctl::CommonOptions common;
  common.address = address;
  const ctl::OutputJson audited = ctl::audit_document(options, common);
  Grid table{{{"verdict"}, {"problem"}, {"device"}, {"check"}, {"evidence"}}, {}, "", true, true};
  for (const ctl::OutputJson& record : audited["records"]) {
    for (const ctl::OutputJson& line : record["checks"]) {
      std::vector<std::string> terms;
      for (const auto& [name, value] : record["problem"].items()) {
        terms.push_back(name + "=" + (value.is_string() ? value.get<std::string>() : value.dump()));
      }
      table.rows.push_back({{line["verdict"].get<std::string>()},
                            {join(terms, ",")},
                            {record["device"].get<std::string>()},
                            {line["check"].get<std::string>()},
                            {line["evidence"].get<std::string>()}});
    }
  }
  std::ranges::stable_sort(table.rows, {}, [](const Row& row) { return row[0].text; });  // fail, note, ok
  View view{"Can the records of " + kernel + " be shipped?",
            "cubindctl audit " + ctl::shell_word(kernel) + " --shipped --verbose",
            {Sentence{counted(audited["failed"].get<std::uint64_t>(), "check") + " failed for " +
                      counted(audited["records"].size(), "record") + "."},
             std::move(table)}};
  view.is_live = false;  // each audit asks the daemon for every record
  return view;
}

}  // namespace cubind::web
