// cubindctl get: prints an answer, writes the cubin.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "client/client.hpp"
#include "client/connection.hpp"
#include "client/cubindctl/answers/answer_json.hpp"
#include "client/cubindctl/answers/asked_terms.hpp"
#include "client/cubindctl/answers/comparison_output.hpp"
#include "client/cubindctl/answers/launch_text.hpp"
#include "client/cubindctl/commands.hpp"
#include "client/cubindctl/terminal/terminal.hpp"
#include "client/cubindctl/terminal/text_table.hpp"
#include "client/cubindctl/terminal/text_wrap.hpp"
#include "client/cubindctl/tune/problem_locations.hpp"
#include "client/cubindctl/tune/progress_bar.hpp"
#include "client/request.hpp"
#include "plan/wire.hpp"

namespace cubind::ctl {
namespace {

// All but the problem.
Query query_of(const GetOptions& options, const CommonOptions& common) {
  Query query = asked_query(options);
  query.kernel = options.kernel;
  query.device = asked_device(options.kernel, options.device, common);
  query.on_miss = options.on_miss;
  query.tune = options.tune;
  query.accept = options.accept;
  query.job = options.job;
  query.generation = options.generation;
  return query;
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
    if (provenance_.timing().samples() > 0) {
      print_measurement();
    }
    for (const Launch& launch : answer_.plan().launches) {
      line("launch", launch_text(launch));
      for (const std::string& map : tensor_map_texts(launch)) {
        line("tensor map", map);
      }
    }
    line("tensor cores", tensor_cores_text());
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
    const std::string before =
        prefix_ + "  " + name + std::string(name.size() < 14 ? 14 - name.size() : 1, ' ');
    const std::size_t columns = output_columns();
    std::cout << before
              << wrapped_under(text, columns > 2 * before.size() ? columns - before.size() : 0,
                               prefix_ + std::string(before.size() - prefix_.size(), ' '))
              << "\n";
  }

  std::string evidence_text() const {
    std::string text(to_string(answer_.evidence()));
    if (provenance_.provisional()) {
      text += ", provisional";
    }
    if (provenance_.timing().samples() > 0) {
      text += ": " + provenance_.measured_device() + measured_elsewhere() + ", driver " +
              provenance_.driver().version() + ", " + provenance_.toolchain() + ", " +
              provenance_.timing().measured_at();
    }
    return text + "; generation " + generation_text(provenance_.generation());
  }

  // "yes", "no", or the launches whose entries use them.
  std::string tensor_cores_text() const {
    const std::vector<Launch>& launches = answer_.plan().launches;
    std::vector<std::string> with;
    for (const Launch& launch : launches) {
      const auto uses_them = [&](const v1::EntryResources& entry) {
        return entry.entry_symbol() == launch.entry_symbol && entry.tensor_cores();
      };
      if (std::ranges::any_of(reply_.artifact().entries(), uses_them)) {
        with.push_back(launch.entry);
      }
    }
    if (with.empty()) {
      return "no";
    }
    return with.size() == launches.size() ? "yes" : "in " + join(with, ", ");
  }

  // Times and gain are those of the measured problem, which may differ from the asked one.
  std::string measured_elsewhere() const {
    const Problem measured = problem_from_wire(provenance_.measured_problem(), "measured_problem");
    return measured == answer_.problem() ? "" : " at " + to_string(measured);
  }

  void print_measurement() const {
    const Timing& timing = provenance_.timing();
    std::string flags = timing.contended() ? ", contended" : "";
    flags += timing.throttled() ? ", throttled" : "";
    line("time", fixed(timing.median_us(), 2) + " us [" + fixed(timing.low_us(), 2) + ", " +
                     fixed(timing.high_us(), 2) + "], " + std::to_string(timing.samples()) + " samples by " +
                     timing.timer() + " at " + std::to_string(timing.sm_mhz()) + " MHz" + flags);
    if (const auto gain = over_default(timing)) {
      line("gain", fixed(*gain, 2) + "x over the default configuration");
    }
    for (const LibraryComparison& comparison : provenance_.over_library()) {
      line("over library", over_library(comparison));
    }
    const v1::VerificationSummary& verification = provenance_.verification();
    line("verified", verification.verified()
                         ? "against " + verification.reference() + " on " +
                               counted(verification.problems_size(), "problem") + ", worst error " +
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

void print_one(const Answer& answer, const std::string& file) {
  AnswerPrinter(answer).print();
  if (!file.empty()) {
    std::cout << replay_prefix(answer.reply().device()) << "  written to    " << file << "\n";
  }
}

void print_table(const std::vector<Answer>& answers) {
  TextTable table({"PROBLEM", "MATCH", "?EVIDENCE", ">TIME_US", ">??CUBIN", "CONFIGURATION"});
  for (const Answer& answer : answers) {
    const v1::Provenance& provenance = answer.reply().provenance();
    table.add({to_string(answer.problem()), to_string(answer.match()),
               std::string(to_string(answer.evidence())),
               provenance.timing().samples() > 0 ? fixed(provenance.timing().median_us(), 2) : "-",
               size_text(answer.cubin().size()), to_string(answer.configuration())});
  }
  table.print(std::cout, output_columns(), replay_prefix(answers.front().reply().device()));
}

// To standard error: a program may read the table.
void tell_why(const std::vector<Answer>& answers) {
  std::cout.flush();
  for (const Answer& answer : answers) {
    if (!answer.reply().why().empty()) {
      std::cerr << to_string(answer.problem()) << ": " << one_line(answer.reply().why()) << "\n";
    }
  }
}

// Whether a job that the answer could not wait for will still end: the daemon answers at once where it cannot
// say when the job will go on, because callers on a busy GPU wait for themselves.
bool has_open_job(const v1::GetVariantReply& reply) {
  return reply.job_state() == "no_device" || reply.job_state() == "waiting_for_idle_gpu";
}

// The awaited measurement is missing and will not come by itself.
bool is_unmeasured(const Answer& answer) {
  const v1::GetVariantReply& reply = answer.reply();
  return !reply.why().empty() && reply.job_state() != "done";
}

// Asks, and where the answer has to wait for a measurement, until there is one or --timeout has passed.
class Patience {
 public:
  Patience(Client& client, const Connection& connection, const CommonOptions& common)
      : client_(client), connection_(connection), common_(common) {}

  Answer ask(Query query) const {
    if (query.on_miss != OnMiss::Wait) {
      return client_.get(query);
    }
    const auto end = std::chrono::steady_clock::now() + common_.deadline();
    std::string why;
    try {
      while (true) {
        query.deadline = until(end);
        Answer answer = client_.get(query);
        if (!has_open_job(answer.reply())) {
          return answer;
        }
        why = one_line(answer.reply().why());
        connection_.watch_job(
            answer.reply().job_id(), [](const v1::TuneEvent&) {}, {}, until(end));
      }
    } catch (const Error& error) {
      if (error.code() != ErrorCode::DeadlineExceeded) {
        throw;
      }
      throw Error(ErrorCode::DeadlineExceeded, to_string(query.problem),
                  "had not been measured after " +
                      fixed(std::chrono::duration<double>(common_.deadline()).count(), 1) + " s (--timeout)" +
                      (why.empty() ? "" : ": " + why) + "; a job goes on: `cubindctl jobs` shows its state");
    }
  }

 private:
  static Milliseconds until(std::chrono::steady_clock::time_point end) {
    const auto left = std::chrono::ceil<Milliseconds>(end - std::chrono::steady_clock::now());
    return std::max(left, Milliseconds(1));
  }

  Client& client_;
  const Connection& connection_;
  const CommonOptions& common_;
};

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
  const Connection connection(resolve_address(common.address));
  const Patience patience(client, connection, common);
  std::vector<Answer> answers;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    query.problem = problems[i];
    with_locations({"--problem " + options.problems[i]}, [&] { answers.push_back(patience.ask(query)); });
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
  } else if (common.json) {
    print_json(json_of(answers.front()));
  } else {
    print_one(answers.front(), options.output);
  }
  const bool waited_in_vain = options.on_miss == OnMiss::Wait && std::ranges::any_of(answers, is_unmeasured);
  return waited_in_vain ? ExitCode::TuningFailed : ExitCode::Ok;
}

}  // namespace cubind::ctl
