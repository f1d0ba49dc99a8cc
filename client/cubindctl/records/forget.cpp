// cubindctl forget: faults of configurations that the daemon remembers.
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/text.hpp"
#include "client/connection.hpp"
#include "client/cubindctl/commands.hpp"
#include "client/cubindctl/reply_json.hpp"
#include "client/cubindctl/terminal/terminal.hpp"
#include "client/cubindctl/terminal/text_table.hpp"
#include "plan/wire.hpp"

namespace cubind::ctl {
namespace {

// Tunables are integers with names, as dims are.
v1::Configuration configuration_of(const std::string& text) {
  const Problem values = parse_problem(text);
  if (values.dims.empty() || !values.types.empty() || !values.scenario.empty()) {
    throw Error(ErrorCode::InvalidArgument, "--configuration",
                quoted(text) + " is not of the form THREADS=1024,VECTOR=8");
  }
  v1::Configuration configuration;
  to_wire(Configuration{values.dims}, configuration);
  return configuration;
}

v1::ForgetFaultsRequest request_of(const ForgetOptions& options) {
  if (options.kernel.empty() && !options.all) {
    throw Error(ErrorCode::InvalidArgument, "forget", "name a kernel, or give --all for every kernel");
  }
  v1::ForgetFaultsRequest request;
  request.set_kernel(options.kernel);
  for (const std::string& problem : options.problems) {
    to_wire(parse_problem(problem), *request.add_problems());
  }
  if (!options.configuration.empty()) {
    *request.mutable_configuration() = configuration_of(options.configuration);
  }
  if (!options.device.empty()) {
    request.mutable_device()->set_label(options.device);
  }
  request.set_dry_run(options.dry_run);
  return request;
}

std::uint64_t count_of(const v1::ForgetFaultsReply::Forgotten& one) {
  std::uint64_t count = 0;
  for (const v1::OutcomeCount& outcome : one.outcomes()) {
    count += outcome.count();
  }
  return count;
}

std::uint64_t count_of(const v1::ForgetFaultsReply& reply) {
  std::uint64_t count = 0;
  for (const auto& one : reply.forgotten()) {
    count += count_of(one);
  }
  return count;
}

void print(const v1::ForgetFaultsReply& reply, bool dry_run) {
  if (reply.forgotten().empty()) {
    std::cout << "No such fault is remembered on " << reply.device() << ".\n";
    return;
  }
  TextTable table({"KERNEL", "PROBLEM", ">FAULTS", "OUTCOMES"});
  for (const auto& one : reply.forgotten()) {
    std::vector<std::string> outcomes;
    for (const v1::OutcomeCount& outcome : one.outcomes()) {
      outcomes.push_back(std::to_string(outcome.count()) + " " + outcome_name(outcome.outcome()));
    }
    table.add({one.kernel(), to_string(problem_from_wire(one.problem(), "forgotten.problem")),
               std::to_string(count_of(one)), join(outcomes, ", ")});
  }
  table.print(std::cout, output_columns());
  std::cout << (dry_run ? "Would forget " : "Forgot ") << count_of(reply) << " on " << reply.device()
            << ".\n";
}

OutputJson forgotten_json(const v1::ForgetFaultsReply& reply, bool dry_run) {
  OutputJson forgotten = OutputJson::array();
  for (const auto& one : reply.forgotten()) {
    forgotten.push_back({{"kernel", one.kernel()},
                         {"problem", json_of(problem_from_wire(one.problem(), "forgotten.problem"))},
                         {"outcomes", json_of(one.outcomes())}});
  }
  return {{"dry_run", dry_run},
          {"device", reply.device()},
          {"faults", count_of(reply)},
          {"forgotten", forgotten}};
}

}  // namespace

ExitCode run(const ForgetOptions& options, const CommonOptions& common) {
  const v1::ForgetFaultsRequest request = request_of(options);
  const v1::ForgetFaultsReply reply =
      Connection(resolve_address(common.address)).forget_faults(request, common.deadline());
  if (common.json) {
    print_json(forgotten_json(reply, options.dry_run));
  } else {
    print(reply, options.dry_run);
  }
  return ExitCode::Ok;
}

}  // namespace cubind::ctl
