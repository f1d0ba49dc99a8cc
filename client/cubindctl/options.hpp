// The user's request to cubindctl, a struct a command.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "client/query.hpp"

namespace cubind::ctl {

// What a question says besides its kernel and its problem.
struct QuestionOptions {
  std::string device;  // label
  std::string name_space;
  bool warm_l2 = false;
  bool graph_launch = false;
  bool reproducible = false;
  std::string invariant_dim;
};

// Without a device: the one class that agents offer.
struct TuneOptions : QuestionOptions {
  std::string kernel;  // empty: the shape list names it
  std::string shapes;  // file; empty: none
  std::vector<std::string> problems;
  std::uint64_t max_trials = 0;  // 0: not said
  double max_seconds = 0;        // 0: not said
  std::uint32_t top = 0;         // of the want list; 0: all
  bool wanted = false;           // the want list's problems
  bool retune = false;
  bool detach = false;
};

struct VerifyOptions {
  std::string kernel;  // empty: every kernel
  std::vector<std::string> problems;
  std::string device;  // label; empty: every one that agents offer
  bool all = false;    // also records that are not stale
};

// Without a device: this machine's GPU, else the one class that agents offer.
struct GetOptions : QuestionOptions {
  std::string kernel;
  std::vector<std::string> problems;  // one prints all of its answer, several a table
  std::string output;                 // file for the cubin; empty: none
  OnMiss on_miss = OnMiss::Serve;
  TuneMode tune = TuneMode::Auto;
  std::optional<std::string> accept;
  std::string job;         // whose generation answers; empty: none
  std::string generation;  // to which the answer is locked, as `get` prints it; empty: none
};

// Without a device: this machine's GPU, else the one class that agents offer.
struct CoverOptions : QuestionOptions {
  std::string kernel;  // empty: the shape list names it
  std::string shapes;  // file; empty: none
  std::vector<std::string> problems;
  std::string accept = "bucket";
  bool shipped = false;  // a shipped record covers
};

// Without a device: every one.
struct AuditOptions : QuestionOptions {
  std::string kernel;
  std::vector<std::string> problems;  // empty: every record of the kernel
  bool shipped = false;               // also shipped records
  bool verbose = false;               // every check, not only those that failed
};

/// Which of the daemon's records a command takes.
struct RecordChoice {
  std::vector<std::string> kernels;  // empty: all
  std::string device;
  std::string name_space;
  bool replayed = false;
  bool provisional = false;
  bool shipped = false;
};

struct ExportOptions {
  RecordChoice records;
  std::string output;  // file; empty: standard output
  bool all_trials = false;
  bool samples = false;
};

struct ImportOptions {
  std::vector<std::string> files;
  std::string name_space;
};

struct BundleCreateOptions {
  std::string output;  // file
  std::string key;     // file of minisign's secret key
  std::string issuer;
  std::uint64_t serial = 0;
  std::string expires;  // a day or a time
  RecordChoice records;
  bool compile = false;            // cubins that the daemon lacks
  std::vector<std::string> specs;  // folders of specs before the shipped ones
};

struct BundleVerifyOptions {
  std::string file;
  std::string trust;  // file
};

struct BundleShowOptions {
  std::string file;
};

struct BackupOptions {
  std::string output;  // file
};

struct TableCheckOptions {
  std::vector<std::string> files;
  std::vector<std::string> kernels;  // folders of specs before the shipped ones
  bool allow_outdated = false;
  bool measure = false;                         // each record, on the GPU of today
  double warn_ratio = 1.10, fail_ratio = 1.15;  // today's time over the table's
};

struct TableDiffOptions {
  std::string a, b;                       // files
  std::optional<std::string> fail_above;  // percent, "2%"
};

struct TableMergeOptions {
  std::vector<std::string> files;
  std::string output;  // file; empty: standard output
};

struct KernelsOptions {
  bool defined = false;  // those that callers have defined, instead of the others
};

struct CheckOptions {
  std::string file;
  std::vector<std::string> problems;
  std::vector<std::string> architectures;
  std::string device;  // label; empty: the one class that agents offer
};

struct InitOptions {
  std::string name;
  std::string folder = ".";
};

struct SchemaOptions {};

struct WantedOptions {
  std::string kernel;     // empty: every kernel
  std::uint32_t top = 0;  // 0: all
};

struct DevicesOptions {};

struct JobsOptions {
  bool all = false;
  std::vector<std::string> watch;  // job ids
};

struct JobsShowOptions {
  std::string id;
};

struct CancelOptions {
  std::vector<std::string> ids;
};

struct ForgetOptions {
  std::string kernel;  // empty: with `all`, every kernel
  std::vector<std::string> problems;
  std::string configuration;  // tunables and their values; empty: any
  std::string device;         // label; empty: the one class that agents offer
  bool all = false;
  bool dry_run = false;
};

struct JudgeOptions {
  std::string task;    // a kernel's name, or a spec file
  std::string source;  // file
  std::vector<std::string> headers;
  std::vector<std::string> problems;
  std::vector<std::string> grid, block;
  std::string shared_bytes;
  std::string baseline;  // values of tunables; empty: the default configuration
  std::string device;    // label
  std::string name_space;
  std::uint32_t rounds = 0;
  bool keep = false;
  bool deterministic = false;
  std::string html;    // empty: no page
  std::string out;     // empty: the verdict is not written
  std::string key;     // secret, with `out`
  std::string verify;  // a verdict file, instead of judging
  std::string trust;
};

// Without a device: whichever has trials.
struct ExplainOptions : QuestionOptions {
  std::string subject;  // a kernel's name, with `problem`; else a job's id
  std::string problem;
};

// Without a device: this machine's GPU, else the one class that agents offer.
struct ProfileOptions : QuestionOptions {
  std::string kernel;
  std::string problem;
  std::string output;  // file for the launcher; empty: KERNEL.launch
};

struct ReportOptions {
  std::string kernel, job;  // one of them, or `all`
  bool all = false;
  bool shipped = false;    // also shipped records
  bool stability = false;  // of the kernel's winners, in place of the page
  std::string device;      // label; empty: every one
  std::string output;      // file; empty: standard output
  /// What is said where no kernel has the name.
  std::string hint = "a job's id goes with --job";
};

struct StatusOptions {};

struct HealthOptions {
  unsigned wait_s = 0;  // for a daemon that serves and the agent that it starts
};

struct CompletionOptions {
  std::string shell;
};

struct TokenNewOptions {
  std::string file, name;
  std::vector<std::string> roles, namespaces, device_classes;  // the last two empty: all
  std::string expires = "90d";
};

struct TokenListOptions {
  std::string file;
};

struct TokenRevokeOptions {
  std::string file;
  std::vector<std::string> ids;
};

using Command =
    std::variant<TuneOptions, VerifyOptions, GetOptions, CoverOptions, AuditOptions, ExportOptions,
                 ImportOptions, BackupOptions, TableCheckOptions, TableDiffOptions, TableMergeOptions,
                 KernelsOptions, CheckOptions, InitOptions, SchemaOptions, WantedOptions, DevicesOptions,
                 JobsOptions, JobsShowOptions, CancelOptions, ForgetOptions, JudgeOptions, ExplainOptions,
                 ProfileOptions, ReportOptions, StatusOptions, HealthOptions, CompletionOptions,
                 TokenNewOptions, TokenListOptions, TokenRevokeOptions, BundleCreateOptions,
                 BundleVerifyOptions, BundleShowOptions>;

struct CommonOptions {
  std::string address;  // empty: CUBIND_ADDRESS, else the default socket
  bool json = false;
  std::optional<std::chrono::milliseconds> timeout;

  /// For calls that answer at once.
  std::chrono::milliseconds deadline() const { return timeout.value_or(std::chrono::seconds(30)); }
};

struct CommandLine {
  CommonOptions common;
  Command command;
};

}  // namespace cubind::ctl
