#include "tuner/agent/options.hpp"

#include <sched.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

#include "base/file.hpp"
#include "base/number_option.hpp"
#include "base/process_host.hpp"
#include "base/version.hpp"

namespace cubind {
namespace {

// Each has about 20 MiB of its own, also while it has nothing to do.
constexpr std::size_t kReadyForGpu = 16;

unsigned affinity_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    return static_cast<unsigned>(std::max(CPU_COUNT(&set), 1));
  }
  return std::max(std::thread::hardware_concurrency(), 1u);
}

// cgroup v2.
double cgroup_cores() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string line;
  std::getline(file, line);
  return cores_of_quota(line);
}

std::string default_agent_id() {
  // Containers of one host may have one name and the same process numbers.
  char random[12] = "";
  std::snprintf(random, sizeof(random), "-%08x", std::random_device()());
  return host_name() + "-" + std::to_string(getpid()) + random;
}

// In a package it lies next to bin/, in a wheel's Python package next to _programs/.
std::filesystem::path find_triton_worker() {
  const std::filesystem::path prefix = executable_dir().parent_path();
  std::vector<std::filesystem::path> folders{prefix / "triton" / "worker",
                                             prefix.parent_path() / "triton" / "worker"};
  if (const auto tree = source_tree_around(executable_dir())) {
    folders.push_back(*tree / "python" / "cubind" / "triton" / "worker");
  }
  for (const std::filesystem::path& folder : folders) {
    std::error_code failed;
    if (std::filesystem::exists(folder / "__main__.py", failed)) {
      return folder;
    }
  }
  return {};
}

struct TimesMs {
  long long compile = 30'000, run = 10'000, idle_poll = 2'000, memory_poll = 10'000;
  std::optional<long long> exit_when_idle;
};

CLI::Validator within(NumberOption number) { return {std::move(number.read), std::move(number.range)}; }

NumberOption milliseconds_of_a_day() { return whole_number(1, 86'400'000); }

void add_options(CLI::App& app, AgentOptions& options, TimesMs& times, std::string& when,
                 std::string& worker) {
  app.set_version_flag("--version", std::string("cubind-agent ") + kVersion);
  app.add_option("--address", options.address, "the daemon: unix:///PATH, tls://HOST:PORT or HOST:PORT")
      ->envname("CUBIND_ADDRESS");
  app.add_option("--token-file", options.token_file, "holds the agent's token (default: CUBIND_TOKEN_FILE)")
      ->check(CLI::ExistingFile);
  app.add_option("--exit-when-idle", times.exit_when_idle,
                 "end when there was no work for so long, e.g. 60s or 10m (default: stay)")
      ->transform(within(duration()));
  app.add_option("--id", options.agent_id,
                 "name in the daemon's lists, of one agent at a time (default: HOST-PID-RANDOM)");
  app.add_option("--worker", worker, "cubind-worker (default: next to this executable)")
      ->envname("CUBIND_WORKER");
  app.add_option("--gpus", options.gpus,
                 "UUIDs or indices, separated by commas (default: CUDA_VISIBLE_DEVICES)")
      ->delimiter(',');
  app.add_option("--tune-when", when,
                 "idle (default): only while no other process uses the GPU; always; never")
      ->check(CLI::IsMember({"idle", "always", "never"}));
  app.add_option("--memory-fraction", options.memory_fraction,
                 "share of the free GPU memory that trials may use")
      ->transform(within(share()));
  app.add_option("--timer", options.timer, "cupti or graph (default: the best that works)")
      ->check(CLI::IsMember({"cupti", "graph"}));
  app.add_option("--replay", options.replay,
                 "offer a replay device that plays this table of recorded trials; may be repeated");
  app.add_option("--compile-jobs", options.compile_jobs, "compile workers (default: one per core)")
      ->transform(within(number_of_compile_jobs()));
  app.add_option("--triton-python", options.triton_pythons,
                 "Python that has Triton, which compiles Triton kernels; may be repeated")
      ->envname("CUBIND_TRITON_PYTHON")
      ->delimiter(':');
  app.add_flag("--allow-partial-sandbox", options.allow_partial_sandbox,
               "compile sources of other users also where this host's kernel lacks a part of the sandbox")
      ->envname("CUBIND_ALLOW_PARTIAL_SANDBOX");
  app.add_option("--compile-deadline-ms", times.compile, "deadline of one compile")
      ->transform(within(milliseconds_of_a_day()));
  app.add_option("--run-deadline-ms", times.run, "deadline of one verification or block of samples")
      ->envname("CUBIND_RUN_DEADLINE_MS")
      ->transform(within(milliseconds_of_a_day()));
  app.add_option("--idle-poll-ms", times.idle_poll, "how often the agent looks at a GPU that is in use")
      ->transform(within(milliseconds_of_a_day()));
  app.add_option("--memory-poll-ms", times.memory_poll,
                 "how often the agent looks at the free memory of idle GPUs")
      ->envname("CUBIND_MEMORY_POLL_MS")
      ->transform(within(milliseconds_of_a_day()));
  app.add_option("--parent-pid", options.parent_pid, "end when this process ends")
      ->transform(within(whole_number(1, 1 << 22)));  // Linux has no more
  app.add_option("--log-level", options.log_level, "trace, debug, info, warn, error or off")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "off"}));
  app.add_flag("--list-devices", options.list_devices,
               "print the GPUs of this machine for a parent agent and end");
}

void complete(AgentOptions& options, const TimesMs& times, const std::string& when,
              const std::string& worker) {
  options.tune_when = when == "always"  ? TuneWhen::Always
                      : when == "never" ? TuneWhen::Never
                                        : TuneWhen::Idle;
  options.worker_program = worker.empty() ? executable_dir() / "cubind-worker" : absolute_path(worker);
  for (std::string& python : options.triton_pythons) {
    python = absolute_path(python).string();  // a link stays: a virtual environment's Python is one
  }
  options.triton_worker = find_triton_worker();
  if (options.agent_id.empty()) {
    options.agent_id = default_agent_id();
  }
  if (times.exit_when_idle) {
    options.exit_when_idle = std::chrono::milliseconds(*times.exit_when_idle);
  }
  options.compile_deadline = std::chrono::milliseconds(times.compile);
  options.deadlines.run = std::chrono::milliseconds(times.run);
  options.idle_poll = std::chrono::milliseconds(times.idle_poll);
  options.memory_poll = std::chrono::milliseconds(times.memory_poll);
}

}  // namespace

unsigned compile_jobs_for(double cores) { return std::max(static_cast<unsigned>(cores), 1u); }

unsigned ready_compilers(unsigned compile_jobs, std::size_t gpus) {
  return static_cast<unsigned>(std::min<std::size_t>(compile_jobs, kReadyForGpu * gpus));
}

double cores_of_quota(const std::string& cpu_max) {
  std::istringstream words(cpu_max);
  std::string quota;
  double period = 0;
  if (!(words >> quota >> period) || quota == "max" || period <= 0) {
    return 1e6;
  }
  return std::max(std::strtod(quota.c_str(), nullptr) / period, 1.0);
}

unsigned default_compile_jobs() {
  return compile_jobs_for(std::min(static_cast<double>(affinity_cores()), cgroup_cores()));
}

std::optional<AgentOptions> parse_agent_options(int argc, const char* const* argv, int& exit_code) {
  AgentOptions options;
  options.compile_jobs = default_compile_jobs();
  TimesMs times;
  std::string when = "idle", worker;
  CLI::App app("cubind-agent: tunes kernels for a cubind daemon on the GPUs of this machine", "cubind-agent");
  add_options(app, options, times, when, worker);
  try {
    app.parse(argc, argv);
    if (options.address.empty() && !options.list_devices) {
      throw CLI::RequiredError("--address");
    }
  } catch (const CLI::ParseError& error) {
    exit_code = app.exit(error);
    return std::nullopt;
  }
  complete(options, times, when, worker);
  return options;
}

}  // namespace cubind
