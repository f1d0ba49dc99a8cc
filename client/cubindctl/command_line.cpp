#include "client/cubindctl/command_line.hpp"

#include <CLI/CLI.hpp>
#include <iostream>
#include <map>
#include <memory>

#include "base/version.hpp"

namespace cubind::ctl {
namespace {

const std::map<std::string, OnMiss> kOnMiss = {
    {"serve", OnMiss::Serve}, {"wait", OnMiss::Wait}, {"fail", OnMiss::Fail}};
const std::map<std::string, TuneMode> kTuneMode = {{"auto", TuneMode::Auto}, {"never", TuneMode::Never}};

constexpr const char* kProblemHelp = "dims and types of one call: N=4096,D=4096,T=bf16";

// Adds the subcommands; whichever is given puts its options into `line`.
class Builder {
 public:
  Builder(CLI::App& app, CommandLine& line) : app_(app), line_(line) {}

  void add_all() {
    add_tune();
    add_get();
    add_export();
    add_import();
    add_kernels();
    add_listings();
    add_jobs();
  }

 private:
  template <typename Options>
  std::pair<CLI::App*, std::shared_ptr<Options>> add(CLI::App& parent, const char* name, const char* help) {
    CLI::App* command = parent.add_subcommand(name, help);
    auto options = std::make_shared<Options>();
    command->callback([this, command, options] {
      if (command->get_subcommands().empty()) {
        line_.command = *options;
      }
    });
    return {command, options};
  }

  // One value an occurrence: what follows is not swallowed.
  static CLI::Option* add_repeated(CLI::App* command, const std::string& name,
                                   std::vector<std::string>& values, const std::string& help) {
    return command->add_option(name, values, help)->allow_extra_args(false);
  }

  template <typename Options>
  static void add_question(CLI::App* command, Options& options) {
    command->add_option("--device", options.device,
                        "label of the device class, as `cubindctl devices` lists it");
    command->add_option("--namespace", options.name_space, "namespace of the records");
    command->add_flag("--warm-l2", options.warm_l2, "times with a warm L2 cache; default: cold");
    command->add_flag("--graph", options.graph_launch,
                      "times of launches in a CUDA graph; default: on a stream");
    command->add_flag("--reproducible", options.reproducible,
                      "only variants with the same bits from run to run");
  }

  void add_tune() {
    auto [command, options] = add<TuneOptions>(app_, "tune", "measure problems and store the winners");
    command->add_option("kernel", options->kernel, "name; may be left out if the shape list names it");
    command->add_option("--shapes", options->shapes,
                        "shape list: {\"problems\": [{\"N\": 1024, \"T\": \"bf16\"}]}");
    add_repeated(command, "--problem", options->problems, std::string(kProblemHelp) + "; repeatable");
    add_question(command, *options);
    command->add_flag("--retune", options->retune, "measure again what is fresh");
    command->add_flag("--detach", options->detach, "print the jobs' ids and end");
  }

  void add_get() {
    auto [command, options] = add<GetOptions>(app_, "get", "the best variant for a problem");
    command->add_option("kernel", options->kernel, "name")->required();
    add_repeated(command, "--problem", options->problems,
                 std::string(kProblemHelp) + "; several print a table")
        ->required();
    add_question(command, *options);
    command->add_option("-o,--output", options->output, "file for the cubin of one problem");
    command->add_option("--on-miss", options->on_miss, "serve (default), wait for the measurement, or fail")
        ->transform(CLI::CheckedTransformer(kOnMiss).description("serve|wait|fail"));
    command->add_option("--tune", options->tune, "auto (default): a miss starts a job; or never")
        ->transform(CLI::CheckedTransformer(kTuneMode).description("auto|never"));
    command->add_option("--accept", options->accept,
                        "departures that are tolerated, as in bucket+stale, or exact; default: all");
  }

  void add_export() {
    auto [command, options] = add<ExportOptions>(app_, "export", "the tuning table as JSON");
    command->add_option("-o,--output", options->output, "file; default: standard output");
    add_repeated(command, "--kernel", options->kernels, "only this kernel; repeatable");
    command->add_option("--device", options->device, "only this device class; default: every real one");
    command->add_option("--namespace", options->name_space, "namespace of the records");
    command->add_flag("--all-trials", options->all_trials, "every trial; default: winners only");
    command->add_flag("--samples", options->samples, "with --all-trials: every sample");
    command->add_flag("--replayed", options->replayed, "also what the replay device yielded");
    command->add_flag("--provisional", options->provisional, "also what was measured beside other processes");
  }

  void add_import() {
    auto [command, options] = add<ImportOptions>(app_, "import", "take in tuning tables");
    command->add_option("file", options->files, "table as `export` writes it")->required();
    command->add_option("--namespace", options->name_space, "namespace of the records");
  }

  void add_kernels() {
    auto [command, options] = add<KernelsOptions>(app_, "kernels", "the kernels that the daemon knows");
    auto [check, check_options] =
        add<CheckOptions>(*command, "check", "validate a kernel spec and compile its default configuration");
    check->add_option("file", check_options->file, "kernel spec (JSON)")->required();
    add_repeated(check, "--problem", check_options->problems,
                 std::string(kProblemHelp) + "; counts its valid configurations; repeatable");
    add_repeated(check, "--arch", check_options->architectures,
                 "compile for it: sm_90 (default); repeatable");
  }

  void add_listings() {
    add<DevicesOptions>(app_, "devices", "device classes with records or agents");
    add<StatusOptions>(app_, "status", "the daemon's state");
  }

  void add_jobs() {
    auto [command, options] = add<JobsOptions>(app_, "jobs", "tuning jobs that have not ended");
    command->add_flag("--all", options->all, "also those that have ended");
    command->add_option("--watch", options->watch, "follow this job to its end");
    auto [cancel, cancel_options] = add<CancelOptions>(app_, "cancel", "cancel tuning jobs");
    cancel->add_option("id", cancel_options->ids, "as `cubindctl jobs` lists it")->required();
  }

  CLI::App& app_;
  CommandLine& line_;
};

void add_common(CLI::App& app, CommonOptions& common) {
  app.add_option("--address", common.address,
                 "unix:///path/to/socket or host:port; default: $CUBIND_ADDRESS");
  app.add_flag("--json", common.json, "print JSON; every number names its unit");
  app.add_option_function<double>(
         "--timeout",
         [&common](double seconds) {
           common.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
         },
         "seconds; default: 30, and none for tune and jobs --watch")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.001, 1e6, ""));
  app.set_version_flag("--version", std::string("cubindctl ") + kVersion);
}

}  // namespace

std::variant<CommandLine, ExitCode> parse_command_line(int argc, const char* const* argv) {
  CLI::App app("Tunes CUDA kernels through a cubind daemon and fetches the winners.", "cubindctl");
  CommandLine line;
  app.footer(exit_code_help());
  app.require_subcommand(1);
  app.fallthrough();
  add_common(app, line.common);
  Builder builder(app, line);  // the parser calls back into it
  builder.add_all();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? ExitCode::Ok : ExitCode::Invalid;
  }
  return line;
}

}  // namespace cubind::ctl
