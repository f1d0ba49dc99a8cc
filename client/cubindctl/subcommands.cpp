#include "client/cubindctl/subcommands.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <memory>

#include "base/number_option.hpp"
#include "base/text.hpp"
#include "plan/search.hpp"
#include "schemas/limits.hpp"

namespace cubind::ctl {
namespace {

template <typename Value>
using Choices = std::vector<std::pair<const char*, Value>>;

const Choices<OnMiss> kOnMiss = {{"serve", OnMiss::Serve}, {"wait", OnMiss::Wait}, {"fail", OnMiss::Fail}};
const Choices<TuneMode> kTuneMode = {
    {"auto", TuneMode::Auto}, {"never", TuneMode::Never}, {"sealed", TuneMode::Sealed}};

constexpr const char* kProblemHelp = "dims and types of one call: N=4096,D=4096,T=bf16";

// The form of a value, which help prints and completion reads: its kind, or its choices between bars.
constexpr const char* kFile = "FILE";
constexpr const char* kFolder = "FOLDER";

// Adds the subcommands; whichever is given puts its options into `line`.
class Builder {
 public:
  Builder(CLI::App& app, CommandLine& line) : app_(app), line_(line) {}

  void add_all() {
    add_tune();
    add_verify();
    add_get();
    add_cover();
    add_audit();
    add_export();
    add_import();
    add_backup();
    add_bundle();
    add_table();
    add_kernels();
    add_wanted();
    add_listings();
    add_jobs();
    add_forget();
    add_judge();
    add_token();
    add_explain();
    add_profile();
    add_report();
    add_completion();
  }

 private:
  template <typename Options>
  std::pair<CLI::App*, std::shared_ptr<Options>> add(CLI::App& parent, const char* name, const char* help) {
    CLI::App* command = parent.add_subcommand(name, help);
    auto options = std::make_shared<Options>();
    command->callback([&line = line_, command, options] {
      if (command->get_subcommands().empty()) {
        line.command = *options;
      }
    });
    return {command, options};
  }

  template <typename Value>
  static CLI::Option* option(CLI::App* command, const std::string& name, Value& value,
                             const std::string& type, const std::string& help) {
    CLI::Option* const made = command->add_option(name, value, help)->type_name(type);
    // Otherwise a script's unset variable writes no file, and the command succeeds.
    if (type == kFile || type == kFolder) {
      made->check([](const std::string& path) { return path.empty() ? "the path is empty" : ""; });
    }
    return made;
  }

  static std::function<std::string(const std::string&)> one_of(std::vector<std::string> words) {
    return [words = std::move(words)](const std::string& word) {
      return std::ranges::find(words, word) != words.end()
                 ? std::string()
                 : quoted(word) + " is not one of " + join(words, ", ");
    };
  }

  // The words of the choices, in their order, are the form of the value.
  template <typename Value>
  static void add_choice(CLI::App* command, const std::string& name, Value& value,
                         const Choices<Value>& choices, const std::string& help) {
    std::vector<std::string> words;
    for (const auto& [word, meaning] : choices) {
      words.emplace_back(word);
    }
    const auto choose = [&value, &choices](const std::string& word) {
      value = std::ranges::find(choices, word, &std::pair<const char*, Value>::first)->second;
    };
    command->add_option_function<std::string>(name, choose, help)
        ->type_name(join(words, "|"))
        ->check(one_of(words));
  }

  // One value an occurrence: the option does not take the next words.
  static CLI::Option* add_repeated(CLI::App* command, const std::string& name,
                                   std::vector<std::string>& values, const std::string& type,
                                   const std::string& help) {
    return option(command, name, values, type, help)->allow_extra_args(false);
  }

  static void add_question(CLI::App* command, QuestionOptions& options) {
    option(command, "--device", options.device, "LABEL",
           "label of the device class, as `cubindctl devices` lists it");
    option(command, "--namespace", options.name_space, "NAME", "namespace of the records");
    command->add_flag("--warm-l2", options.warm_l2, "measured with a warm L2 cache; default: cold");
    command->add_flag("--graph", options.graph_launch,
                      "measured as launches of a CUDA graph; default: on a stream");
    auto* reproducible = command->add_flag("--reproducible", options.reproducible,
                                           "only variants with the same bits from run to run");
    option(command, "--invariant", options.invariant_dim, "DIM",
           "only variants whose output rows have the same bits for every size of DIM")
        ->excludes(reproducible)
        ->check([](const std::string& dim) { return dim.empty() ? "name a dim of the kernel" : ""; });
  }

  void add_tune() {
    auto [command, options] = add<TuneOptions>(app_, "tune", "measure problems and store the winners");
    option(command, "kernel", options->kernel, "KERNEL", "name; may be left out if the shape list names it");
    option(command, "--shapes", options->shapes, kFile,
           "shape list, .json, .jsonl or .csv: {\"problems\": [{\"N\": 1024, \"T\": \"bf16\"}]}");
    add_repeated(command, "--problem", options->problems, "PROBLEM",
                 std::string(kProblemHelp) + "; repeatable");
    command->add_flag("--wanted", options->wanted,
                      "measure the problems that `cubindctl wanted` lists, each for its own device");
    option(command, "--top", options->top, "N", "with --wanted: only the N most wanted")
        ->check(CLI::Range(1, kMaxProblems).description(""));
    add_question(command, *options);
    option(command, "--max-trials", options->max_trials, "N",
           "configurations to try for each problem; default: all of up to 600, else 300")
        ->check(CLI::Range(std::uint64_t{1}, kMostTrials).description(""));
    option(command, "--max-seconds", options->max_seconds, "SECONDS",
           "start no further configuration of a problem after this time")
        ->check(CLI::Validator(number(0.001, kMostSeconds).read, ""));
    command->add_flag("--retune", options->retune, "measure fresh problems again");
    command->add_flag("--detach", options->detach, "print the jobs' ids and end");
  }

  void add_verify() {
    auto [command, options] = add<VerifyOptions>(
        app_, "verify", "measure stale records again, each from its own best configurations");
    option(command, "kernel", options->kernel, "KERNEL", "only this kernel");
    add_repeated(command, "--problem", options->problems, "PROBLEM",
                 std::string(kProblemHelp) + "; only this problem of the kernel; repeatable");
    option(command, "--device", options->device, "LABEL",
           "only this device class, as `cubindctl devices` lists it");
    command->add_flag("--all", options->all, "also records that are not stale");
  }

  void add_get() {
    auto [command, options] = add<GetOptions>(app_, "get", "print the best variant for a problem");
    option(command, "kernel", options->kernel, "KERNEL", "name")->required();
    add_repeated(command, "--problem", options->problems, "PROBLEM",
                 std::string(kProblemHelp) + "; several print a table")
        ->required();
    add_question(command, *options);
    option(command, "-o,--output", options->output, kFile, "file for the cubin of one problem");
    add_choice(command, "--on-miss", options->on_miss, kOnMiss,
               "serve (default), wait for the measurement, or fail");
    add_choice(command, "--tune", options->tune, kTuneMode,
               "auto (default): a miss starts a job; never; or sealed: nor a compile");
    option(command, "--accept", options->accept, "DEPARTURES",
           "tolerated departures, as in bucket+stale, or exact; default: all");
    option(command, "--job", options->job, "NAME",
           "the training job, which gets the answers of one generation");
    option(command, "--generation", options->generation, "GENERATION",
           "lock the answer to this generation, as an earlier `get` has printed it");
  }

  void add_cover() {
    auto [command, options] =
        add<CoverOptions>(app_, "cover", "check that a list of problems is answered by measurements");
    option(command, "kernel", options->kernel, "KERNEL", "name; may be left out if the shape list names it");
    option(command, "--shapes", options->shapes, kFile, "shape list, as `tune` takes it");
    add_repeated(command, "--problem", options->problems, "PROBLEM",
                 std::string(kProblemHelp) + "; repeatable");
    add_question(command, *options);
    option(command, "--accept", options->accept, "DEPARTURES",
           "departures that count as covered, as in bucket+stale, or exact; default: bucket");
    add_shipped(command, options->shipped);
  }

  void add_audit() {
    auto [command, options] = add<AuditOptions>(
        app_, "audit", "check a kernel's records before they are shipped: results, speed, freshness");
    option(command, "kernel", options->kernel, "KERNEL", "name")->required();
    add_repeated(command, "--problem", options->problems, "PROBLEM",
                 std::string(kProblemHelp) + "; repeatable; default: every record");
    add_question(command, *options);
    add_shipped(command, options->shipped);
    command->add_flag("--verbose", options->verbose, "every check; default: those that failed");
  }

  static CLI::Option* add_shipped(CLI::App* command, bool& shipped) {
    return command->add_flag("--shipped", shipped, "also records that came with cubind");
  }

  static void add_questions_of_records(CLI::App* command, RecordChoice& records) {
    add_repeated(command, "--kernel", records.kernels, "KERNEL", "only this kernel; repeatable");
    option(command, "--device", records.device, "LABEL", "only this device class; default: every real one");
    option(command, "--namespace", records.name_space, "NAME", "namespace of the records");
  }

  static void add_doubtful_records(CLI::App* command, RecordChoice& records) {
    command->add_flag("--replayed", records.replayed, "also results of the replay device");
    command->add_flag("--provisional", records.provisional,
                      "also records that were measured next to other processes");
    add_shipped(command, records.shipped);
  }

  void add_export() {
    auto [command, options] = add<ExportOptions>(app_, "export", "write the tuning table as JSON");
    option(command, "-o,--output", options->output, kFile, "file; default: standard output");
    add_questions_of_records(command, options->records);
    command->add_flag("--all-trials", options->all_trials, "every trial; default: winners only");
    command->add_flag("--samples", options->samples,
                      "with --all-trials: every sample, not only each trial's time");
    add_doubtful_records(command, options->records);
  }

  void add_import() {
    auto [command, options] = add<ImportOptions>(app_, "import", "read tuning tables into the store");
    option(command, "file", options->files, kFile, "table as `export` writes it")->required();
    option(command, "--namespace", options->name_space, "NAME", "namespace of the records");
  }

  void add_backup() {
    auto [command, options] =
        add<BackupOptions>(app_, "backup", "copy the daemon's store into a file while it runs");
    option(command, "-o,--output", options->output, kFile, "file; one of this name is replaced")->required();
  }

  void add_bundle() {
    CLI::App* bundle =
        app_.add_subcommand("bundle", "sign records, specs and cubins in one file, and verify such files");
    bundle->require_subcommand(1);
    auto [create, made] =
        add<BundleCreateOptions>(*bundle, "create", "write the daemon's records into a signed bundle");
    option(create, "-o,--output", made->output, kFile, "file; one of this name is replaced")->required();
    option(create, "--key", made->key, kFile, "secret key that `minisign -G -W` made")->required();
    option(create, "--issuer", made->issuer, "NAME", "issuer, whose serials grow")->required();
    option(create, "--serial", made->serial, "N", "number above that of the issuer's last bundle")
        ->required()
        ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 62).description(""));
    option(create, "--expires", made->expires, "DAY", "no daemon takes it from this day on, as in 2027-03-01")
        ->required();
    add_questions_of_records(create, made->records);
    add_doubtful_records(create, made->records);
    create->add_flag("--compile", made->compile,
                     "let the daemon compile the cubins that it lacks, also where that takes minutes");
    add_repeated(create, "--kernels", made->specs, kFolder,
                 "folder of kernel specs, searched before the shipped ones; repeatable");
    auto [verify, verified] = add<BundleVerifyOptions>(*bundle, "verify", "check signatures and content");
    option(verify, "file", verified->file, kFile, "bundle")->required();
    option(verify, "--trust", verified->trust, kFile, "trust file: keys, their expiry and namespaces")
        ->required();
    auto [show, shown] =
        add<BundleShowOptions>(*bundle, "show", "list what a bundle holds, without checking who signed it");
    option(show, "file", shown->file, kFile, "bundle")->required();
  }

  void add_table() {
    CLI::App* table = app_.add_subcommand("table", "work on tuning tables as files");
    table->require_subcommand(1);
    auto [check, check_options] =
        add<TableCheckOptions>(*table, "check", "check tables against their schema and the kernel specs");
    option(check, "file", check_options->files, kFile, "table as `export` writes it")->required();
    add_repeated(check, "--kernels", check_options->kernels, kFolder,
                 "folder of kernel specs, searched before the shipped ones; repeatable");
    check->add_flag("--allow-outdated", check_options->allow_outdated,
                    "only warn about a source, reference or tolerance that has changed since");
    check->add_flag("--measure", check_options->measure, "measure each record through the daemon");
    option(check, "--warn", check_options->warn_ratio, "RATIO",
           "with --measure: warn where today's time is more than RATIO times the table's (1.10)")
        ->check(CLI::Validator(number(0.01, 100).read, ""));
    option(check, "--fail", check_options->fail_ratio, "RATIO", "with --measure: exit with 1 there (1.15)")
        ->check(CLI::Validator(number(0.01, 100).read, ""));
    auto [diff, diff_options] = add<TableDiffOptions>(
        *table, "diff", "compare two tables: records of one alone, changed winners, changed times");
    option(diff, "a", diff_options->a, kFile, "the table before")->required();
    option(diff, "b", diff_options->b, kFile, "the table after")->required();
    option(diff, "--fail-above", diff_options->fail_above, "PERCENT",
           "exit with 1 if a record is slower in B by more, as in 2%");
    auto [merge, merge_options] = add<TableMergeOptions>(
        *table, "merge", "merge tables into one; an imported record never replaces a measured one");
    option(merge, "file", merge_options->files, kFile, "table as `export` writes it")->required();
    option(merge, "-o,--output", merge_options->output, kFile, "file; default: standard output");
  }

  void add_kernels() {
    auto [command, options] = add<KernelsOptions>(app_, "kernels", "list the kernels that the daemon knows");
    command->add_flag(
        "--defined", options->defined,
        "list the kernels that callers have defined (Triton, tune_kernel), instead of the others");
    auto [check, check_options] =
        add<CheckOptions>(*command, "check", "validate a kernel spec and compile its default configuration");
    option(check, "file", check_options->file, kFile, "kernel spec (JSON)")->required();
    add_repeated(check, "--problem", check_options->problems, "PROBLEM",
                 std::string(kProblemHelp) + "; counts its valid configurations; repeatable");
    auto* device = option(check, "--device", check_options->device, "LABEL",
                          "device class to count and compile for; default: the one that agents offer");
    auto* arch = add_repeated(check, "--arch", check_options->architectures, "ARCH",
                              "architecture to compile for instead, as in sm_80; repeatable");
    arch->excludes(device);
    auto [init, init_options] =
        add<InitOptions>(*command, "init", "write a commented kernel spec with its sources to start from");
    option(init, "name", init_options->name, "NAME", "the kernel's name, and that of its files")->required();
    option(init, "--dir", init_options->folder, kFolder, "folder to write to; default: the current one");
    add<SchemaOptions>(*command, "schema", "print the JSON Schema of kernel specs, for editors");
  }

  void add_wanted() {
    auto [command, options] = add<WantedOptions>(
        app_, "wanted", "list problems that were asked for and started no job, most wanted first");
    option(command, "kernel", options->kernel, "KERNEL", "only this kernel");
    option(command, "--top", options->top, "N", "only the N most wanted")
        ->check(CLI::Range(1, 1000000).description(""));
  }

  void add_listings() {
    add<DevicesOptions>(app_, "devices", "list the device classes with records or agents");
    add<StatusOptions>(app_, "status", "print the daemon's state");
    auto [health, options] = add<HealthOptions>(
        app_, "health", "ask gRPC's health service whether the daemon serves; exits with 0 or 3");
    option(health, "--wait", options->wait_s, "SECONDS",
           "wait at most this long until the daemon serves and has its own agent, if it starts one")
        ->check(CLI::Range(0u, 3600u).description(""));
  }

  void add_jobs() {
    auto [command, options] =
        add<JobsOptions>(app_, "jobs", "list or follow tuning jobs that have not ended");
    command->add_flag("--all", options->all, "also jobs that have ended");
    option(command, "--watch", options->watch, "ID", "follow these jobs until they end");
    auto [show, show_options] =
        add<JobsShowOptions>(*command, "show", "print one job, its outcomes and where its time went");
    option(show, "id", show_options->id, "ID", "as `cubindctl jobs --all` lists it")->required();
    auto [cancel, cancel_options] = add<CancelOptions>(app_, "cancel", "cancel tuning jobs");
    option(cancel, "id", cancel_options->ids, "ID", "as `cubindctl jobs` lists it")->required();
  }

  void add_token() {
    CLI::App* token =
        app_.add_subcommand("token", "issue the tokens of a team, in the file of `cubind --tokens`");
    token->require_subcommand(1);
    const auto file = [](CLI::App* command, std::string& value) {
      option(command, "--file", value, kFile, "the file of `cubind --tokens`")->required();
    };
    auto [issue, issue_options] = add<TokenNewOptions>(*token, "new", "issue a token and print it once");
    option(issue, "name", issue_options->name, "NAME", "of the person or the program that holds it")
        ->required();
    add_repeated(issue, "--role", issue_options->roles, "ROLE",
                 "reader, tuner, publisher, agent or admin; repeatable")
        ->required();
    add_repeated(issue, "--namespace", issue_options->namespaces, "NAME",
                 "limit it to this namespace; repeatable; default: all");
    add_repeated(issue, "--device-class", issue_options->device_classes, "LABEL",
                 "limit an agent to this class, as in nvidia-h200; repeatable; default: all");
    option(issue, "--expires", issue_options->expires, "TIME", "90d (default), 12h, a time in UTC, or never");
    file(issue, issue_options->file);
    auto [list, list_options] =
        add<TokenListOptions>(*token, "list", "list the tokens, without their secrets");
    file(list, list_options->file);
    auto [revoke, revoke_options] = add<TokenRevokeOptions>(
        *token, "revoke", "revoke tokens; a running daemon refuses them within a second");
    option(revoke, "id", revoke_options->ids, "ID", "as `cubindctl token list` prints it")->required();
    file(revoke, revoke_options->file);
  }

  void add_forget() {
    auto [command, options] = add<ForgetOptions>(
        app_, "forget", "forget that configurations failed: the next tune tries them again");
    auto* all = command->add_flag("--all", options->all, "of every kernel");
    option(command, "kernel", options->kernel, "KERNEL", "only of this kernel")->excludes(all);
    add_repeated(command, "--problem", options->problems, "PROBLEM",
                 "only at this problem, as in N=4096,D=4096,T=bf16; repeatable")
        ->excludes(all);
    option(command, "--configuration", options->configuration, "VALUES",
           "only where tunables have these values, as in THREADS=1024,VECTOR=8")
        ->excludes(all);
    option(command, "--device", options->device, "LABEL",
           "label of the device class; default: the one that agents offer");
    command->add_flag("--dry-run", options->dry_run, "only print what would be forgotten");
  }

  void add_judge() {
    auto [command, options] =
        add<JudgeOptions>(app_, "judge", "verify and time an untrusted source against a task's own");
    option(command, "task", options->task, "TASK", "a kernel's name, or a kernel spec: FILE.json");
    option(command, "source", options->source, kFile, "CUDA source with the task's entries");
    add_repeated(command, "--header", options->headers, kFile, "that the source includes; repeatable");
    add_repeated(command, "--problem", options->problems, "PROBLEM",
                 "as in N=4096,D=4096,T=bf16; repeatable");
    add_repeated(command, "--grid", options->grid, "EXPRESSION",
                 "the source's blocks along an axis; repeatable; default: the task's");
    add_repeated(command, "--block", options->block, "EXPRESSION",
                 "its threads along an axis; repeatable; default: the task's");
    option(command, "--shared-bytes", options->shared_bytes, "EXPRESSION",
           "its dynamic shared memory; default: the task's");
    option(command, "--baseline", options->baseline, "VALUES",
           "the task's configuration to compare with, as in THREADS=256,VECTOR=4; default: its default");
    option(command, "--device", options->device, "LABEL",
           "label of the device class; default: the one that agents offer");
    option(command, "--namespace", options->name_space, "NAME", "the job's namespace");
    option(command, "--rounds", options->rounds, "N", "paired rounds for each problem; default: 30")
        ->check(CLI::Range(10u, 2000u).description(""));
    command->add_flag("--keep", options->keep, "keep the source and its trials in the daemon");
    command->add_flag("--deterministic", options->deterministic,
                      "the source claims the same bits for the same inputs: others are unreproducible");
    option(command, "--html", options->html, kFile, "write the verdict as a page");
    auto* out = option(command, "--out", options->out, kFile, "write the verdict");
    option(command, "--key", options->key, kFile,
           "secret key that `minisign -G -W` made: sign what --out writes")
        ->needs(out);
    auto* trust = option(command, "--trust", options->trust, kFile, "trust file, with --verify");
    option(command, "--verify", options->verify, kFile, "print a verdict that a key of --trust has signed")
        ->needs(trust);
  }

  void add_explain() {
    auto [command, options] = add<ExplainOptions>(
        app_, "explain", "explain why a problem's winner won: the fastest, the finalists, the failures");
    option(command, "subject", options->subject, "JOB|KERNEL",
           "a tuning job's id, or with --problem a kernel's name")
        ->required();
    option(command, "--problem", options->problem, "PROBLEM", kProblemHelp);
    add_question(command, *options);
  }

  void add_profile() {
    auto [command, options] = add<ProfileOptions>(
        app_, "profile", "write a file from which ncu launches a served variant, and print the command");
    option(command, "kernel", options->kernel, "KERNEL", "name")->required();
    option(command, "--problem", options->problem, "PROBLEM", kProblemHelp)->required();
    add_question(command, *options);
    option(command, "-o,--output", options->output, kFile,
           "file that ncu launches the variant from; default: KERNEL.launch");
  }

  void add_report() {
    auto [command, options] = add<ReportOptions>(
        app_, "report", "write a page that shows what was tuned: one file, to look at or to send");
    auto* kernel = option(command, "kernel", options->kernel, "KERNEL", "its records, trials and jobs");
    auto* job = option(command, "--job", options->job, "ID", "only what this job tuned")->excludes(kernel);
    command->add_flag("--all", options->all, "the records and jobs of every kernel, without trials")
        ->excludes(kernel)
        ->excludes(job);
    auto* device =
        option(command, "--device", options->device, "LABEL", "only this device class; default: every one");
    auto* shipped = add_shipped(command, options->shipped);
    auto* output =
        option(command, "-o,--output", options->output, kFile, "file (HTML); default: standard output");
    command
        ->add_flag("--stability", options->stability,
                   "print how often the kernel's winners changed when measured again")
        ->needs(kernel)
        ->excludes(device)
        ->excludes(shipped)
        ->excludes(output);
  }

  void add_completion() {
    auto [completion, shell] =
        add<CompletionOptions>(app_, "completion", "print the completion script for a shell");
    option(completion, "shell", shell->shell, "bash|zsh", "the shell")
        ->required()
        ->check(one_of({"bash", "zsh"}));
  }

  CLI::App& app_;
  CommandLine& line_;
};

}  // namespace

void add_subcommands(CLI::App& app, CommandLine& line) { Builder(app, line).add_all(); }

}  // namespace cubind::ctl
