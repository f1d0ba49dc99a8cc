// cubindctl wanted: problems that were asked for and started no job.
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/hex.hpp"
#include "base/text.hpp"
#include "client/connection.hpp"
#include "client/cubindctl/answers/own_terms.hpp"
#include "client/cubindctl/commands.hpp"
#include "client/cubindctl/terminal/json_output.hpp"
#include "client/cubindctl/terminal/terminal.hpp"
#include "client/cubindctl/terminal/text_table.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind::ctl {
namespace {

// The terms of an entry that differ from the default, and why it cannot be tuned.
std::string remarks(const v1::Want& want) {
  std::vector<std::string> parts = own_terms(want.policy(), want.numerics(), want.namespace_());
  if (!want.obstacle().empty()) {
    parts.push_back("not now: " + want.obstacle());
  }
  return remarks_of(parts);
}

// A problem whose job failed has none: it is wanted from the next question on.
void print_nothing(const Connection& connection, const CommonOptions& common) {
  const v1::ListJobsReply jobs = connection.list_jobs(true, common.deadline());
  const auto failed = static_cast<std::uint64_t>(std::ranges::count_if(jobs.jobs(), [](const v1::Job& job) {
    return job.state() == v1::Job::FAILED && job.kind() == v1::Job::TUNE;
  }));
  std::cout << "Nothing is wanted: every asked problem has a record or was given to a job.\n";
  if (failed > 0) {
    std::cout << counted(failed, "job") << " failed: `cubindctl jobs --all` says why.\n";
  }
}

void print(const v1::ListWantedReply& reply) {
  TextTable table({">ASKED", "??LAST", "KERNEL", "PROBLEM", "?DEVICE", "REMARKS"});
  for (const v1::Want& want : reply.wants()) {
    table.add({std::to_string(want.count()), want.last_at(), want.kernel(),
               to_string(problem_from_wire(want.problem(), "want.problem")), want.device(), remarks(want)});
  }
  table.print(std::cout, output_columns());
  if (const auto shown = static_cast<std::uint64_t>(reply.wants_size()); shown < reply.total()) {
    std::cout << "and " << reply.total() - shown << " more\n";
  }
}

OutputJson want_json(const v1::Want& want) {
  OutputJson json{{"kernel", want.kernel()},
                  {"problem", json_of(problem_from_wire(want.problem(), "want.problem"))},
                  {"device", want.device()},
                  {"device_class", hex(want.device_class())},
                  {"policy", to_string(policy_from_wire(want.policy()))},
                  {"numerics", to_string(numerics_from_wire(want.numerics()))},
                  {"namespace", want.namespace_()},
                  {"count", want.count()},
                  {"first_at", want.first_at()},
                  {"last_at", want.last_at()}};
  if (!want.obstacle().empty()) {
    json["obstacle"] = want.obstacle();
  }
  return json;
}

}  // namespace

ExitCode run(const WantedOptions& options, const CommonOptions& common) {
  v1::ListWantedRequest request;
  request.set_kernel(options.kernel);
  request.set_top(options.top);
  const Connection connection(resolve_address(common.address));
  const v1::ListWantedReply reply = connection.list_wanted(request, common.deadline());
  if (!common.json) {
    reply.total() == 0 ? print_nothing(connection, common) : print(reply);
    return ExitCode::Ok;
  }
  OutputJson wanted = OutputJson::array();
  for (const v1::Want& want : reply.wants()) {
    wanted.push_back(want_json(want));
  }
  print_json({{"wanted", wanted}, {"total", reply.total()}});
  return ExitCode::Ok;
}

}  // namespace cubind::ctl
