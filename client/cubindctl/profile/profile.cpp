// cubindctl profile: a file with which ncu profiles a served variant, and the command that does it.
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "client/client.hpp"
#include "client/connection.hpp"
#include "client/cubindctl/answers/asked_terms.hpp"
#include "client/cubindctl/answers/stored_trials.hpp"
#include "client/cubindctl/commands.hpp"
#include "client/cubindctl/report/report_commands.hpp"
#include "client/cubindctl/terminal/json_output.hpp"
#include "plan/wire.hpp"
#include "schemas/worker.pb.h"
#include "tuner/spec/problem_arguments.hpp"

namespace cubind::ctl {
namespace {

Answer served(const ProfileOptions& options, const CommonOptions& common) {
  Query query = asked_query(options);
  query.kernel = options.kernel;
  query.problem = parse_problem(options.problem);
  query.device = asked_device(options.kernel, options.device, common);
  query.tune = TuneMode::Never;
  Client client({.address = common.address, .deadline = common.deadline(), .cached_answers = 0});
  return client.get(query);
}

/// The served cubin, its launches for the asked problem, and inputs by the spec's fills.
v1::LaunchFile launch_file_of(const KernelSpec& spec, const Answer& answer) {
  if (answer.plan().launches.empty()) {
    throw Error(ErrorCode::InvalidArgument, to_string(answer.problem()),
                "has nothing to launch: every grid of the kernel has a zero");
  }
  v1::LaunchFile file;
  v1::PrepareProblem& problem = *file.mutable_problem();
  problem.set_kernel(spec.name);
  problem.set_reference("expected");
  to_wire(answer.problem(), *problem.mutable_problem());
  add_arguments(spec, answer.problem(), {&answer.plan()}, answer.cubin_digest(), problem);
  file.set_cubin(answer.cubin());
  to_wire(answer.plan(), *file.mutable_plan());
  return file;
}

/// The launcher starts and stops the profiler around the launches that count, and has warmed the clocks up.
std::string ncu_command(const std::string& launch_file, bool warm_l2) {
  return std::string("ncu --set detailed --section WarpStateStats --profile-from-start off") +
         " --clock-control none --cache-control " + (warm_l2 ? "none " : "all ") +
         shell_word((executable_dir() / "cubind-worker").string()) + " launch " + shell_word(launch_file);
}

}  // namespace

ExitCode run(const ProfileOptions& options, const CommonOptions& common) {
  const Connection connection(resolve_address(common.address));
  const auto spec = stored_spec(connection, options.kernel, common, "");
  const Answer answer = served(options, common);
  const std::string file = options.output.empty() ? options.kernel + ".launch" : options.output;
  write_output(file, launch_file_of(*spec, answer).SerializeAsString());
  const std::string command = ncu_command(file, options.warm_l2);
  if (common.json) {
    print_json({{"kernel", answer.kernel()},
                {"problem", json_of(answer.problem())},
                {"device", answer.reply().device()},
                {"configuration", json_of(answer.configuration())},
                {"match", to_string(answer.match())},
                {"launch_file", file},
                {"command", command}});
    return ExitCode::Ok;
  }
  std::cout << file << " launches " << answer.kernel() << " " << to_string(answer.problem()) << " on "
            << answer.reply().device() << " with " << to_string(answer.configuration())
            << " (match: " << to_string(answer.match()) << "). To profile it, run\n"
            << command << "\n";
  return ExitCode::Ok;
}

}  // namespace cubind::ctl
