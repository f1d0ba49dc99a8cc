// cubindctl get: prints an answer, writes the cubin.
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "client/client.hpp"
#include "client/connection.hpp"
#include "client/cubindctl/commands.hpp"
#include "client/cubindctl/json_output.hpp"
#include "client/cubindctl/progress_bar.hpp"
#include "client/cubindctl/text_table.hpp"
#include "client/cubindctl/text_wrap.hpp"
#include "client/gpu.hpp"
#include "tuner/plan/evidence_wire.hpp"
#include "tuner/plan/wire.hpp"

namespace cubind::ctl {
namespace {

// The GPU of this machine, else the one class that agents offer: a laptop asks for what the daemon has.
DeviceChoice choose_device(const GetOptions& options, const CommonOptions& common) {
  if (!options.device.empty()) {
    return DeviceLabel{options.device};
  }
  if (has_gpu()) {
    return CurrentGpu{};
  }
  std::vector<std::string> offered, known;
  const v1::ListDevicesReply devices =
      Connection(resolve_address(common.address)).list_devices(common.deadline());
  for (const v1::DeviceClass& device : devices.devices()) {
    (device.offered() ? offered : known).push_back(device.label());
  }
  if (offered.size() != 1) {
    known.insert(known.end(), offered.begin(), offered.end());
    throw Error(ErrorCode::InvalidArgument, "device",
                "this machine has no GPU; name one by --device (known: " + join(known, ", ") + ")");
  }
  return DeviceLabel{offered.front()};
}

// All but the problem.
Query query_of(const GetOptions& options, const CommonOptions& common) {
  Query query;
  query.kernel = options.kernel;
  query.device = choose_device(options, common);
  query.on_miss = options.on_miss;
  query.tune = options.tune;
  query.accept = options.accept;
  query.warm_l2 = options.warm_l2;
  query.graph_launch = options.graph_launch;
  query.reproducible = options.reproducible;
  query.invariant_dim = options.invariant_dim;
  query.name_space = options.name_space;
  return query;
}

std::string dim_text(const Dim3& dim) {
  return std::to_string(dim.x) + "x" + std::to_string(dim.y) + "x" + std::to_string(dim.z);
}

class AnswerPrinter {
 public:
  explicit AnswerPrinter(const Answer& answer)
      : answer_(answer),
        reply_(answer.reply()),
        provenance_(answer.reply().provenance()),
        prefix_(replay_prefix(answer.reply().device())) {}

  void print() const {
    std::cout << prefix_ << answer_.kernel() << " " << to_string(answer_.problem()) << " on "
              << reply_.device() << "\n";
    line("configuration", to_string(answer_.configuration()));
    line("match", to_string(answer_.match()));
    line("evidence", evidence_text());
    if (provenance_.samples() > 0) {
      print_measurement();
    }
    for (const Launch& launch : answer_.plan().launches) {
      line("launch", launch.entry + " grid " + dim_text(launch.grid) + " block " + dim_text(launch.block) +
                         " shared " + std::to_string(launch.shared_bytes) + " B");
    }
    line("cubin", reply_.artifact().architecture() + ", " + size_text(answer_.cubin().size()) + ", " +
                      reply_.artifact().toolchain() + ", sha256 " + answer_.cubin_digest().hex());
    if (!reply_.job_id().empty()) {
      line("job", reply_.job_id() + " " + reply_.job_state());
    }
    if (!reply_.why().empty()) {
      line("why", one_line(reply_.why()));
    }
  }

 private:
  void line(const std::string& name, const std::string& text) const {
    std::cout << prefix_ << "  " << name << std::string(name.size() < 14 ? 14 - name.size() : 1, ' ') << text
              << "\n";
  }

  std::string evidence_text() const {
    std::string text(to_string(answer_.evidence()));
    if (provenance_.provisional()) {
      text += ", provisional";
    }
    if (provenance_.samples() > 0) {
      text += ": " + provenance_.measured_device() + measured_elsewhere() + ", driver " +
              provenance_.driver().version() + ", " + provenance_.toolchain() + ", " +
              provenance_.measured_at();
    }
    return text + "; generation " + std::to_string(provenance_.generation().number());
  }

  // Times and gain are those of the measured problem, which may differ from the asked one.
  std::string measured_elsewhere() const {
    const Problem measured = problem_from_wire(provenance_.measured_problem(), "measured_problem");
    return measured == answer_.problem() ? "" : " at " + to_string(measured);
  }

  void print_measurement() const {
    const Timing timing = timing_from_wire(provenance_);
    std::string flags = timing.contended ? ", contended" : "";
    flags += timing.throttled ? ", throttled" : "";
    line("time", fixed(timing.median_us, 2) + " us [" + fixed(timing.low_us, 2) + ", " +
                     fixed(timing.high_us, 2) + "], " + std::to_string(timing.samples) + " samples by " +
                     timing.timer + " at " + std::to_string(timing.sm_mhz) + " MHz" + flags);
    if (timing.gain_over_default > 0) {
      line("gain", fixed(timing.gain_over_default, 2) + "x over the default configuration");
    }
    const v1::VerificationSummary& verification = provenance_.verification();
    line("verified", verification.verified()
                         ? "against " + verification.reference() + " on " +
                               std::to_string(verification.problems_size()) + " problems, worst error " +
                               fixed(verification.worst_excess(), 3) + " of the tolerance"
                         : "no");
    line("same bytes", provenance_.same_bytes_measured() ? "the cubin is the one that was measured"
                                                         : "the cubin was compiled since");
  }

  const Answer& answer_;
  const v1::GetVariantReply& reply_;
  const v1::Provenance& provenance_;
  const std::string prefix_;
};

ExitCode print_one(const Answer& answer, const std::string& file) {
  AnswerPrinter(answer).print();
  if (!file.empty()) {
    std::cout << replay_prefix(answer.reply().device()) << "  written to    " << file << "\n";
  }
  return ExitCode::Ok;
}

void print_table(const std::vector<Answer>& answers) {
  TextTable table({"PROBLEM", "MATCH", "EVIDENCE", ">TIME_US", ">CUBIN", "CONFIGURATION"});
  for (const Answer& answer : answers) {
    const v1::Provenance& provenance = answer.reply().provenance();
    table.add({to_string(answer.problem()), to_string(answer.match()),
               std::string(to_string(answer.evidence())),
               provenance.samples() > 0 ? fixed(provenance.median_us(), 2) : "-",
               size_text(answer.cubin().size()), to_string(answer.configuration())});
  }
  table.print(std::cout, replay_prefix(answers.front().reply().device()));
}

// Prints beside the table, which a program may read.
void tell_why(const std::vector<Answer>& answers) {
  std::cout.flush();
  for (const Answer& answer : answers) {
    if (!answer.reply().why().empty()) {
      std::cerr << to_string(answer.problem()) << ": " << one_line(answer.reply().why()) << "\n";
    }
  }
}

// A wait that is over tells what it waited for.
Answer ask(Client& client, const Query& query, const CommonOptions& common) {
  try {
    return client.get(query);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::DeadlineExceeded || query.on_miss != OnMiss::Wait) {
      throw;
    }
    throw Error(ErrorCode::DeadlineExceeded, to_string(query.problem),
                "had not been measured after " +
                    fixed(std::chrono::duration<double>(common.deadline()).count(), 1) +
                    " s (--timeout); a job goes on: `cubindctl jobs` shows its state");
  }
}

void print_table_json(const std::vector<Answer>& answers) {
  OutputJson list = OutputJson::array();
  for (const Answer& answer : answers) {
    list.push_back(json_of(answer));
  }
  print_json({{"answers", list}});
}

}  // namespace

// Each problem is a question of its own to the daemon: a client that lives longer answers some by the rule of
// another.
ExitCode run(const GetOptions& options, const CommonOptions& common) {
  std::vector<Problem> problems;
  for (const std::string& problem : options.problems) {
    problems.push_back(parse_problem(problem));
  }
  if (problems.size() > 1 && !options.output.empty()) {
    throw Error(ErrorCode::InvalidArgument, "--output",
                "takes the cubin of one problem, " + std::to_string(problems.size()) + " are given");
  }
  Query query = query_of(options, common);
  Client client({.address = common.address, .deadline = common.deadline(), .cached_answers = 0});
  std::vector<Answer> answers;
  for (const Problem& problem : problems) {
    query.problem = problem;
    answers.push_back(ask(client, query, common));
  }
  if (!options.output.empty()) {
    write_output(options.output, answers.front().cubin());
  }
  if (answers.size() > 1) {
    if (common.json) {
      print_table_json(answers);
    } else {
      print_table(answers);
      tell_why(answers);
    }
    return ExitCode::Ok;
  }
  if (common.json) {
    print_json(json_of(answers.front()));
    return ExitCode::Ok;
  }
  return print_one(answers.front(), options.output);
}

}  // namespace cubind::ctl
