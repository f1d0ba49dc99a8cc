// cubindctl profile: why a served variant is slow, by the GPU's counters.
#include <algorithm>
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
#include "client/cubindctl/profile/launch_file.hpp"
#include "client/cubindctl/profile/ncu.hpp"
#include "client/cubindctl/profile/ncu_csv.hpp"
#include "client/cubindctl/profile/profile_output.hpp"
#include "client/cubindctl/terminal/terminal.hpp"

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

// The log of ncu, which launches the variant from the file.
std::string ncu_log(const ProfileOptions& options, const std::string& launch_file) {
  const auto ncu = find_ncu();
  if (!ncu) {
    const std::string log = options.kernel + ".csv";
    throw Error(ErrorCode::NotFound, "ncu",
                "NVIDIA Nsight Compute is neither in PATH nor in CUDA_HOME or /usr/local/cuda. " +
                    launch_file + " is written: where there is ncu, run\n  " +
                    ncu_command({launch_file, log, options.warm_l2}) +
                    "\nand then this command again with --csv " + log);
  }
  const TempDir folder;
  const NcuRun run{launch_file, folder.path() / "ncu.csv", options.warm_l2};
  run_ncu(*ncu, run);
  if (!std::filesystem::exists(run.log)) {
    throw Error(
        ErrorCode::FailedPrecondition, ncu->string(),
        "ended without a log: run it by itself, " + ncu_command({launch_file, "ncu.csv", options.warm_l2}));
  }
  return read_file(run.log);
}

std::string symbols_of(const LaunchPlan& plan) {
  std::vector<std::string> symbols;
  for (const Launch& launch : plan.launches) {
    symbols.push_back(launch.entry_symbol);
  }
  return join(symbols, ", ");
}

// The table is of this variant: its launches, in their order.
void check_launches(const std::vector<ProfiledLaunch>& launches, const LaunchPlan& plan,
                    const std::string& file) {
  const bool is_of_plan =
      std::ranges::equal(launches, plan.launches, {}, &ProfiledLaunch::entry_symbol, &Launch::entry_symbol);
  if (!is_of_plan) {
    std::vector<std::string> seen;
    for (const ProfiledLaunch& launch : launches) {
      seen.push_back(launch.entry_symbol);
    }
    throw Error(ErrorCode::FailedPrecondition, file,
                "ncu saw other launches (" + join(seen, ", ") + ") than the variant has (" +
                    symbols_of(plan) + "): profile again, with the command as it is printed");
  }
}

std::uint32_t spilled_bytes(const Answer& answer) {
  std::uint32_t most = 0;
  for (const v1::EntryResources& entry : answer.reply().artifact().entries()) {
    most = std::max(most, entry.spill_store_bytes() + entry.spill_load_bytes());
  }
  return most;
}

}  // namespace

ExitCode run(const ProfileOptions& options, const CommonOptions& common) {
  const Connection connection(resolve_address(common.address));
  const auto spec = stored_spec(connection, options.kernel, common, "");
  const Answer answer = served(options, common);
  std::string file = options.csv, text;
  if (file.empty()) {
    const std::string launch_file = options.output.empty() ? options.kernel + ".launch" : options.output;
    write_output(launch_file, launch_file_of(*spec, answer).SerializeAsString());
    text = ncu_log(options, launch_file);
    file = "ncu";
  } else {
    text = read_file(file);
  }
  const VariantProfile profile{read_ncu_csv(text, file), spec->work_sizes(answer.problem()),
                               spilled_bytes(answer)};
  check_launches(profile.launches, answer.plan(), file);
  const Diagnosis diagnosis = diagnose(profile);
  if (common.json) {
    print_json(json_of(profile, answer, diagnosis));
  } else {
    print(std::cout, profile, answer, diagnosis, output_columns());
  }
  return ExitCode::Ok;
}

}  // namespace cubind::ctl
