// The pages of jobs, kernels, wants and records.
#include "client/web/pages.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <ranges>
#include <span>

#include "base/error.hpp"
#include "base/text.hpp"
#include "client/connection.hpp"
#include "client/cubindctl/answers/audit.hpp"
#include "client/cubindctl/answers/own_terms.hpp"
#include "client/cubindctl/report/report_commands.hpp"
#include "client/cubindctl/terminal/json_output.hpp"
#include "client/cubindctl/terminal/text_table.hpp"
#include "client/cubindctl/tune/progress.hpp"
#include "client/web/terms.hpp"
#include "plan/answer_wire.hpp"
#include "plan/wire.hpp"

namespace cubind::web {
namespace {

constexpr std::chrono::seconds kStoreDeadline{10};  // of a page that asks the daemon itself
constexpr std::size_t kMostAudited = 1000;          // records: about two seconds

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

// What distinguishes the record's question, and what makes its time doubtful.
std::string marks_of(const v1::ListedRecord& record) {
  std::vector<std::string> marks = ctl::own_terms(record.policy(), record.numerics(), record.namespace_());
  const v1::Timing& timing = record.provenance().timing();
  for (const auto& [name, is_set] :
       {std::pair{"provisional", record.provenance().provisional()},
        std::pair{"throttled", timing.throttled()}, std::pair{"contended", timing.contended()}}) {
    if (is_set) {
      marks.emplace_back(name);
    }
  }
  return join(marks, ", ");
}

std::string configuration_text(const v1::ListedRecord& record) {
  return to_string(configuration_from_wire(record.configuration(), "configuration"));
}

// A line for each check of an audited record that has the verdict.
std::string checks_text(const ctl::OutputJson& record, const std::string& verdict) {
  std::vector<std::string> lines;
  for (const ctl::OutputJson& line : record["checks"]) {
    if (line["verdict"] == verdict) {
      lines.push_back(line["check"].get<std::string>() + ": " + line["evidence"].get<std::string>());
    }
  }
  return join(lines, "\n");
}

// Over the library that it was compared with last.
Cell library_gain(const v1::ListedRecord& record) {
  if (record.provenance().over_library().empty()) {
    return {"-"};
  }
  const v1::LibraryComparison& last = *record.provenance().over_library().rbegin();
  return {ctl::fixed(last.gain(), 2) + " (" + ctl::fixed(last.gain_low(), 2) + " to " +
              ctl::fixed(last.gain_high(), 2) + ") " + last.library(),
          last.gain()};
}

Cell default_gain(const v1::ListedRecord& record) {
  const v1::Timing& timing = record.provenance().timing();
  return timing.has_gain_over_default() ? number_cell(timing.gain_over_default(), 2) : Cell{"-"};
}

Cell interval_width(const v1::ListedRecord& record) {
  const v1::Timing& timing = record.provenance().timing();
  const double width = (timing.high_us() - timing.low_us()) / std::max(1e-9, timing.median_us());
  return {ctl::fixed(100 * width, 2) + " %", width};
}

std::span<const v1::ListedRecord> records_of(const Snapshot& snapshot, const std::string& kernel) {
  const auto range = std::ranges::equal_range(*snapshot.records.list, kernel, {}, &v1::ListedRecord::kernel);
  return {range.begin(), range.end()};
}

// Equal for the records that one question had one after the other.
std::string question_of(const v1::ListedRecord& record) {
  const v1::Provenance& of = record.provenance();
  return problem_text(of.measured_problem()) + " " + of.measured_device_class() +
         record.policy().SerializeAsString() + " " + record.numerics().SerializeAsString() + " " +
         record.namespace_() + v1::Evidence_Name(of.evidence());
}

using MakeCell = Cell (*)(const v1::ListedRecord&);
const std::vector<std::pair<Column, MakeCell>>& record_columns() {
  static const std::vector<std::pair<Column, MakeCell>> kColumns{
      {{"kernel"}, [](const auto& one) { return kernel_cell(one.kernel()); }},
      {{"problem"}, [](const auto& one) { return Cell{problem_text(one.provenance().measured_problem())}; }},
      {{"time, µs", true},
       [](const auto& one) { return number_cell(one.provenance().timing().median_us(), 2); }},
      {{"times as fast as the default", true}, default_gain},
      {{"times as fast as the library", true}, library_gain},
      {{"evidence"},
       [](const auto& one) {
         const std::string marks = marks_of(one);
         return Cell{std::string(to_string(evidence_from_wire(one.provenance().evidence(), "evidence"))) +
                     (marks.empty() ? "" : ", " + marks)};
       }},
      {{"measured"},
       [](const auto& one) { return Cell{one.provenance().timing().measured_at().substr(0, 10)}; }},
      {{"device"}, [](const auto& one) { return Cell{one.provenance().measured_device()}; }},
      {{"95 % interval, width", true}, interval_width},
      {{"toolchain"}, [](const auto& one) { return Cell{one.provenance().toolchain()}; }},
      {{"winner"}, [](const auto& one) { return Cell{configuration_text(one)}; }}};
  return kColumns;
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
  const std::vector<StageShare> times = stages_of(*job);
  Grid stages{{{"stage"}, {"seconds", true}, {"share"}, {"what the job does"}},
              {},
              "It tells its stages and outcomes when it ends."};
  for (const StageShare& stage : times) {
    const double share = stage.ms / std::max(1.0, job->elapsed_ms());
    const auto text = stage_texts().find(stage.stage);
    stages.rows.push_back({{stage.name},
                           number_cell(stage.ms / 1000, 3),
                           {.text = percent_text(share), .share = share, .colour = "stage-" + stage.stage},
                           {text == stage_texts().end() ? "-" : text->second}});
  }
  Grid outcomes{{{"outcome"}, {"configurations", true}},
                {},
                is_running(*job) ? "" : "No configuration has been tried."};
  for (const v1::OutcomeCount& outcome : job->outcomes()) {
    const bool is_slow = outcome.outcome() == v1::UNVERIFIED;
    outcomes.rows.push_back({{ctl::outcome_name(outcome.outcome()) +
                              (is_slow ? ": too slow to win, so its results were not checked" : "")},
                             count_cell(outcome.count())});
  }
  View view{is_running(*job)                  ? "How far is this job, and what takes its time?"
            : job->state() == v1::Job::FAILED ? "Why did this job fail, and what took its time?"
                                              : "What took this job's time?",
            "cubindctl jobs show " + ctl::shell_word(id),
            {Sentence{job->kernel() + " " + problem_text(job->problem()) + " on " + job->device() + ": " +
                      ctl::state_name(job->state()) + ", " + duration_text(job->elapsed_ms() / 1000) + ", " +
                      std::to_string(job->configurations_done()) + " of " +
                      counted(job->configurations(), "configuration") + ", " +
                      counted(job->nvrtc_calls(), "compile") + "." +
                      (times.empty() || job->elapsed_ms() <= 0
                           ? ""
                           : " Most of the time, " + percent_text(times.front().ms / job->elapsed_ms()) +
                                 ", went to: " + times.front().name + ".")}}};
  const std::string detail = ctl::detail_of(*job);
  if (is_running(*job)) {
    view.blocks.emplace_back(Grid{{{"now"}, {"configurations"}, {"left", true}},
                                  {{{detail.empty() ? "-" : detail}, progress_cell(*job), {rest_of(*job)}}},
                                  ""});
  } else if (!detail.empty()) {
    view.blocks.emplace_back(
        Grid{{{job->state() == v1::Job::FAILED ? "error" : "detail"}}, {{{detail}}}, ""});
  }
  view.blocks.emplace_back(std::move(stages));
  if (job->kind() == v1::Job::TUNE) {
    view.blocks.insert(view.blocks.end(), {std::move(outcomes),
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
  const auto most = [&](std::size_t column) {
    return table.rows.empty() ? 0 : static_cast<std::uint64_t>(*table.rows.front()[column].number);
  };
  std::string next = "None: each problem that was asked for has a record.";
  if (most(2) > 0) {
    const std::string kernel = table.rows.front()[0].text;
    const auto want = std::ranges::find_if(snapshot.wanted.wants(), [&](const v1::Want& one) {
      return one.kernel() == kernel && !one.obstacle().empty();
    });
    next = kernel + ": " + counted(most(2), "question") + " for " + counted(most(3), "problem") +
           " found no record. `cubindctl tune " + ctl::shell_word(kernel) + " --wanted` measures them" +
           (want == snapshot.wanted.wants().end() ? "." : ", but not now: " + want->obstacle() + ".");
  }
  return {"Which kernel to tune next?",
          "cubindctl wanted",
          {Sentence{next}, Sentence{snapshot.records.missing}, std::move(table)}};
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

View records_page(const Snapshot& snapshot) {
  const Records& records = snapshot.records;
  Grid table;
  table.none = records.missing.empty() ? "No record is stored: `cubindctl tune` makes one." : "";
  table.is_asked = true;
  table.count = records.list->size();
  table.cell_of = [list = records.list](std::size_t row, std::size_t column) {
    return record_columns()[column].second((*list)[row]);
  };
  table.text_of = [texts = records.texts](std::size_t row) -> const std::string& { return (*texts)[row]; };
  std::ranges::copy(record_columns() | std::views::keys, std::back_inserter(table.columns));
  return {"How fast is each winner, next to the default and the library?",
          "cubindctl report --all --shipped --json",
          {Sentence{records.missing}, std::move(table)}};
}

std::string text_of(const v1::ListedRecord& record) {
  std::string text;
  for (const MakeCell make : record_columns() | std::views::values) {
    text += make(record).text + " ";
  }
  return lower(std::move(text));
}

View stability_page(const Snapshot& snapshot, const std::string& kernel) {
  v1::ListRecordsRequest request;
  request.set_kernel(kernel);
  request.set_superseded(true);
  std::map<std::string, std::vector<v1::ListedRecord>> questions;  // that were measured again: oldest first
  for (v1::ListedRecord& record : Connection(snapshot.address).list_records(request, kStoreDeadline)) {
    questions[question_of(record)].push_back(std::move(record));
  }
  std::size_t count = 0;
  for (const v1::ListedRecord& record : records_of(snapshot, kernel)) {
    const auto again = questions.empty() ? questions.end() : questions.find(question_of(record));
    count += 1;
    if (again != questions.end()) {
      again->second.push_back(record);
    }
  }
  Grid table{{{"problem"},
              {"device"},
              {"measured", true},
              {"winner changed", true},
              {"the first winner's time over today's", true},
              {"time, µs", true},
              {"marks"},
              {"winner"}},
             {},
             "No problem was measured more than once.",
             true};
  std::erase_if(questions, [](const auto& question) { return question.second.size() < 2; });
  std::size_t changed = 0;
  for (const auto& [question, records] : questions) {
    std::vector<std::string> winners;
    std::ranges::transform(records, std::back_inserter(winners), configuration_text);
    const v1::ListedRecord& today = records.back();
    const double now = today.provenance().timing().median_us(),
                 first = records.front().provenance().timing().median_us();
    const auto end = std::ranges::unique(winners).begin();
    const auto flips = static_cast<std::size_t>(end - winners.begin() - 1);
    changed += flips > 0 ? 1 : 0;
    table.rows.push_back({{problem_text(today.provenance().measured_problem())},
                          {today.provenance().measured_device()},
                          {counted(records.size(), "time"), static_cast<double>(records.size())},
                          {counted(flips, "time"), static_cast<double>(flips)},
                          number_cell(first / std::max(1e-9, now), 3),
                          number_cell(now, 2),
                          {marks_of(today).empty() ? "-" : marks_of(today)},
                          {configuration_text(today)}});
  }
  std::ranges::stable_sort(table.rows, std::ranges::greater(), [](const Row& row) { return row[2].number; });
  View view{
      "Do the winners of " + kernel + " stay when they are measured again?",
      "",
      {Sentence{snapshot.records.missing},
       Sentence{"Of " + counted(count, "problem") + ", " + std::to_string(questions.size()) +
                (questions.size() == 1 ? " was" : " were") + " measured more than once; the winner of " +
                std::to_string(changed) + " has changed. `cubindctl verify " + ctl::shell_word(kernel) +
                " --all` measures them again."},
       std::move(table)}};
  view.is_live = !snapshot.records.missing.empty();  // the daemon reads its store
  return view;
}

std::optional<View> too_large(const Snapshot& snapshot, const std::string& kernel, std::size_t most_records,
                              const std::string& command) {
  const std::size_t count = records_of(snapshot, kernel).size();
  if (count <= most_records) {
    return std::nullopt;
  }
  return View{"This page would be too large",
              command,
              {Sentence{kernel + " has " + std::to_string(count) + " records, and this page is made of " +
                        std::to_string(most_records) + " at most."},
               Sentence{"Its records", "/records?words=" + url_encoded(kernel)}}};
}

View audit_page(const Snapshot& snapshot, const std::string& kernel) {
  const std::string command = "cubindctl audit " + ctl::shell_word(kernel) + " --shipped --verbose";
  if (auto view = too_large(snapshot, kernel, kMostAudited, command)) {
    return *std::move(view);
  }
  ctl::AuditOptions options;
  options.kernel = kernel;
  options.shipped = true;
  ctl::CommonOptions common;
  common.address = snapshot.address;
  const ctl::OutputJson audited = ctl::audit_document(options, common);
  Grid table{{{"verdict"}, {"problem"}, {"device"}, {"time, µs", true}, {"checks that failed"}, {"notes"}},
             {},
             "",
             true};
  std::size_t passed = 0;
  for (const ctl::OutputJson& record : audited["records"]) {
    std::vector<std::string> terms;
    for (const auto& [name, value] : record["problem"].items()) {
      terms.push_back(name + "=" + (value.is_string() ? value.get<std::string>() : value.dump()));
    }
    const std::string failed = checks_text(record, "fail");
    passed += failed.empty() ? 1 : 0;
    table.rows.push_back({{failed.empty() ? "ok" : "fail"},
                          {join(terms, ",")},
                          {record["device"].get<std::string>()},
                          number_cell(record["time_us"].get<double>(), 2),
                          {failed},
                          {checks_text(record, "note")}});
  }
  std::ranges::stable_sort(table.rows, {}, [](const Row& row) { return row[0].text; });  // fail, ok
  View view{"Can the records of " + kernel + " be shipped?",
            command,
            {Sentence{std::to_string(passed) + " of " + counted(audited["records"].size(), "record") +
                      " passed each check."},
             std::move(table)}};
  view.is_live = false;  // each audit asks the daemon for every record
  return view;
}

}  // namespace cubind::web
