// cubindctl audit: what to know of a kernel's records before they are shipped.
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.hpp"
#include "base/text.hpp"
#include "client/client.hpp"
#include "client/connection.hpp"
#include "client/cubindctl/answers/asked_terms.hpp"
#include "client/cubindctl/answers/audit.hpp"
#include "client/cubindctl/answers/stored_trials.hpp"
#include "client/cubindctl/commands.hpp"
#include "client/cubindctl/records/table_output.hpp"
#include "client/cubindctl/terminal/json_output.hpp"
#include "client/cubindctl/terminal/terminal.hpp"
#include "client/cubindctl/terminal/text_table.hpp"
#include "client/cubindctl/terminal/text_wrap.hpp"
#include "client/cubindctl/tune/progress_bar.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind::ctl {
namespace {

struct Audited {
  const TableRecord& record;
  std::string device;  // label
  std::vector<AuditLine> lines;
};

class Auditor {
 public:
  Auditor(const AuditOptions& options, const CommonOptions& common)
      : options_(options),
        common_(common),
        connection_(resolve_address(common.address)),
        client_({.address = common.address, .deadline = common.deadline(), .cached_answers = 0}),
        spec_(stored_spec(connection_, options.kernel, common, "")),
        stored_(stored_trials(connection_, options.kernel, options.device, options.shipped, common)),
        wanted_(wanted()) {}

  std::vector<Audited> run() {
    std::vector<Problem> asked;
    for (const std::string& problem : options_.problems) {
      asked.push_back(spec_->canonicalize(parse_problem(problem), "--problem " + problem));
    }
    std::vector<Audited> audited;
    for (const TableRecord& record : stored_.table.records) {
      const bool is_asked = asked.empty() || std::ranges::count(asked, record.context.problem) > 0;
      if (is_asked && answers_question(record)) {
        audited.push_back(audit(record));
      }
    }
    if (audited.empty()) {
      const std::string shipped = shipped_left_out(stored_.shipped_left_out);
      throw Error(ErrorCode::NotFound, "kernel " + options_.kernel,
                  "has no such record: `cubindctl tune " + options_.kernel + " --problem ...` makes one" +
                      (shipped.empty() ? "" : "; " + shipped));
    }
    return audited;
  }

  std::uint32_t left_out() const { return stored_.shipped_left_out; }

 private:
  bool answers_question(const TableRecord& record) const {
    return record.context.policy == question_.policy && record.numerics == question_.numerics &&
           record.name_space == question_.name_space;
  }

  Audited audit(const TableRecord& record) {
    ExplainedQuestion question = question_;
    question.problem = record.context.problem;
    question.device_class = record.context.device_class;
    const Explanation explanation = explanation_of(record, question);
    AuditInput input{record, explanation, *spec_, "", "", std::nullopt};
    if (covered_.insert(record.context.device_class).second) {
      input.wanted = wanted_on(record.context.device_class);
    }
    ask_daemon(input);
    return {record, explanation.device, ctl::audit(input)};
  }

  // A table that was imported may have winners without trials.
  Explanation explanation_of(const TableRecord& record, const ExplainedQuestion& question) const {
    try {
      return explain(stored_.table, *spec_, question);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::NotFound) {
        throw;
      }
    }
    Explanation empty;
    empty.device =
        std::ranges::find(stored_.table.devices, record.context.device_class, &TableDevice::device_class)
            ->label;
    empty.work = spec_->work_sizes(question.problem);
    return empty;
  }

  void ask_daemon(AuditInput& input) {
    Query query = asked_query(options_);
    query.kernel = options_.kernel;
    query.problem = input.record.context.problem;
    query.device = DeviceLabel{input.explanation.device};
    query.tune = TuneMode::Never;
    try {
      const Answer answer = client_.get(query);
      input.match = to_string(answer.match());
    } catch (const Error& error) {
      if (error.code() != ErrorCode::FailedPrecondition) {
        throw;
      }
      input.match = "nothing that can be launched";
      input.why = one_line(error.what());
    }
  }

  v1::ListWantedReply wanted() const {
    v1::ListWantedRequest request;
    request.set_kernel(options_.kernel);
    return connection_.list_wanted(request, common_.deadline());
  }

  std::uint64_t wanted_on(const Digest& device_class) const {
    return static_cast<std::uint64_t>(std::ranges::count_if(wanted_.wants(), [&](const v1::Want& want) {
      return Digest::from_bytes(want.device_class()) == device_class &&
             !is_measured(problem_from_wire(want.problem(), "want.problem"), device_class);
    }));
  }

  /// Also where its record is stale: the check `today` says that.
  bool is_measured(const Problem& problem, const Digest& device_class) const {
    return std::ranges::any_of(stored_.table.records, [&](const TableRecord& record) {
      return record.context.problem == problem && record.context.device_class == device_class;
    });
  }

  const AuditOptions& options_;
  const CommonOptions& common_;
  const ExplainedQuestion question_ = question_of(options_.kernel, options_);
  const Connection connection_;
  Client client_;
  const std::shared_ptr<const KernelSpec> spec_;
  const StoredTrials stored_;
  const v1::ListWantedReply wanted_;
  std::set<Digest> covered_;  // device classes whose coverage a record's audit tells
};

std::size_t count_of(const Audited& one, Verdict verdict) {
  return static_cast<std::size_t>(std::ranges::count(one.lines, verdict, &AuditLine::verdict));
}

// "FAIL  rmsnorm_forward N=4096,D=4096,T=bf16 on nvidia-h200: 19.12 us, 1 of 11 checks failed, 3 notes"
std::string summary(const Audited& one, const std::string& kernel) {
  const std::size_t failed = count_of(one, Verdict::Fail), notes = count_of(one, Verdict::Note);
  const std::string checks = counted(one.lines.size(), "check");
  return std::string(failed == 0 ? "ok    " : "FAIL  ") + kernel + " " +
         to_string(one.record.context.problem) + " on " + one.device + ": " +
         fixed(one.record.timing.median_us(), 2) + " us, " +
         (failed == 0 ? checks : std::to_string(failed) + " of " + checks + " failed") +
         (notes == 0 ? "" : ", " + counted(notes, "note"));
}

void print(const Audited& one, const std::string& kernel, bool verbose) {
  const std::string prefix = replay_prefix(one.device);
  std::cout << prefix << summary(one, kernel) << "\n";
  if (verbose) {
    std::cout << prefix << "  " << to_string(one.record.context.configuration) << "\n";
  }
  for (const AuditLine& line : one.lines) {
    if (!verbose && line.verdict != Verdict::Fail) {
      continue;
    }
    constexpr std::size_t kVerdict = 6, kCheck = 22;
    std::string before(to_string(line.verdict));
    before.resize(kVerdict, ' ');
    before += line.check;
    before.resize(kVerdict + kCheck, ' ');
    const std::size_t columns = output_columns(), taken = prefix.size() + 2 + before.size();
    std::cout << prefix << "  " << before
              << wrapped_under(line.evidence, columns > 2 * taken ? columns - taken : 0,
                               prefix + std::string(2 + before.size(), ' '))
              << "\n";
  }
}

OutputJson document_of(const Audited& one, const std::string& kernel) {
  OutputJson lines = OutputJson::array();
  for (const AuditLine& line : one.lines) {
    lines.push_back({{"check", line.check},
                     {"verdict", lower_case(std::string(to_string(line.verdict)))},
                     {"evidence", line.evidence}});
  }
  return {{"kernel", kernel},
          {"problem", json_of(one.record.context.problem)},
          {"device", one.device},
          {"configuration", json_of(one.record.context.configuration)},
          {"time_us", one.record.timing.median_us()},
          {"checks", std::move(lines)}};
}

OutputJson document_of(const std::vector<Audited>& audited, const std::string& kernel,
                       std::uint32_t shipped_left_out) {
  std::size_t failed = 0;
  OutputJson records = OutputJson::array();
  for (const Audited& one : audited) {
    failed += count_of(one, Verdict::Fail);
    records.push_back(document_of(one, kernel));
  }
  return {{"records", std::move(records)}, {"failed", failed}, {"shipped_left_out", shipped_left_out}};
}

}  // namespace

OutputJson audit_document(const AuditOptions& options, const CommonOptions& common) {
  Auditor auditor(options, common);
  return document_of(auditor.run(), options.kernel, auditor.left_out());
}

ExitCode run(const AuditOptions& options, const CommonOptions& common) {
  Auditor auditor(options, common);
  const std::vector<Audited> audited = auditor.run();
  const OutputJson document = document_of(audited, options.kernel, auditor.left_out());
  const auto failed = document["failed"].get<std::size_t>();
  if (common.json) {
    print_json(document);
  } else {
    for (const Audited& one : audited) {
      print(one, options.kernel, options.verbose);
    }
    std::cout << counted(audited.size(), "record") << ", " << counted(failed, "check") << " failed"
              << (options.verbose ? "" : "; --verbose prints every check") << "\n";
    if (const std::string shipped = shipped_left_out(auditor.left_out()); !shipped.empty()) {
      std::cerr << shipped << "\n";
    }
  }
  return failed == 0 ? ExitCode::Ok : ExitCode::Failure;
}

}  // namespace cubind::ctl
