#include "tests/support/daemon_fixture.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <thread>

#include "base/error.hpp"
#include "base/file.hpp"
#include "plan/wire.hpp"
#include "tests/support/health.hpp"
#include "tests/support/paths.hpp"

namespace cubind::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::size_t kLogShown = 4000;

std::string environment_of(const char* name) {
  const char* value = std::getenv(name);
  return std::string(name) + "=" + (value ? value : "");
}

}  // namespace

Daemon::Daemon(DaemonOptions options) : options_(std::move(options)) { create_folders(options_.folder); }

Daemon::~Daemon() {
  if (!process_) {
    return;
  }
  const std::vector<ProcessId> family = descendants(process_->pid());
  process_.reset();
  for (const ProcessId& left : wait_until_gone(family, milliseconds(3000))) {
    ::kill(left.pid, SIGKILL);
  }
}

std::filesystem::path Daemon::store() const {
  return options_.store.empty() ? options_.folder / "store.db" : options_.store;
}

std::filesystem::path Daemon::socket() const {
  return options_.socket.empty() ? options_.folder / "cubind.sock" : options_.socket;
}

std::string Daemon::address() const { return "unix://" + socket().string(); }

pid_t Daemon::pid() const { return process_.value().pid(); }

std::string Daemon::log() const {
  const std::string text = read_file(options_.folder / "log");
  return text.size() <= kLogShown ? text : "..." + text.substr(text.size() - kLogShown);
}

void Daemon::fail(const std::string& what) { throw std::runtime_error(what + "\n" + log()); }

// A shell opens the log and becomes the daemon.
void Daemon::spawn() {
  SubprocessOptions child;
  child.program = "/bin/sh";
  child.arguments = {"-c", "log=$1; shift; exec \"$@\" >>\"$log\" 2>&1", "sh", options_.folder / "log",
                     bin_dir() / "cubind"};
  const auto add = [&](const char* option, const std::filesystem::path& value) {
    child.arguments.insert(child.arguments.end(), {option, value});
  };
  if (std::ranges::find(options_.arguments, "--store") == options_.arguments.end()) {
    add("--db", store());
  }
  add("--socket", socket());
  if (!options_.bundle.empty()) {
    add("--bundle", options_.bundle);
    add("--trust", options_.trust);
  } else if (options_.tables.empty()) {
    child.arguments.emplace_back("--no-shipped-tables");
  } else {
    add("--tables", options_.tables);
  }
  for (const std::filesystem::path& folder : options_.kernels) {
    add("--kernels", folder);
  }
  if (!options_.replay.empty()) {
    add("--replay", options_.replay);
  }
  child.arguments.insert(child.arguments.end(), options_.arguments.begin(), options_.arguments.end());
  const std::string folder = options_.folder.string();
  child.environment = {environment_of("PATH"), "HOME=" + folder, "XDG_RUNTIME_DIR=" + folder};
  if (options_.cuda_home.empty()) {
    child.environment.push_back(environment_of("CUBIND_CUDA_HOME"));
  } else {
    child.environment.push_back("CUBIND_CUDA_HOME=" + options_.cuda_home.string());
  }
  if (!options_.faults.empty()) {
    child.environment.push_back("CUBIND_WORKER=" + faulty_worker().string());
    child.environment.push_back("CUBIND_REPLAY_FAULTS=" + options_.faults.string());
  }
  if (!options_.failpoints.empty()) {
    child.environment.push_back("CUBIND_FAILPOINTS=" + options_.failpoints);
  }
  child.environment.insert(child.environment.end(), options_.environment.begin(), options_.environment.end());
  process_.emplace(Subprocess::spawn(child));
}

void Daemon::start() {
  spawn();
  wait_until_serving();
}

ExitStatus Daemon::run_to_end(milliseconds limit) {
  spawn();
  const auto status = process_->wait_until(steady_clock::now() + limit);
  if (!status) {
    fail("the daemon runs on");
  }
  return *status;
}

void Daemon::wait_until_serving() {
  const auto deadline = steady_clock::now() + options_.patience;
  const auto ready = [&] {
    if (health_of(address()) != 1) {
      return false;
    }
    if (!options_.bundle.empty()) {
      return true;
    }
    const v1::GetStatusReply status = connect().get_status(kPatience);
    return status.agents() > 0 && (options_.replay.empty() || status.devices_size() > 0);
  };
  while (!ready()) {
    if (process_->try_wait()) {
      fail("the daemon has ended: " + process_->wait().describe());
    }
    if (steady_clock::now() >= deadline) {
      fail("the daemon does not serve");
    }
    std::this_thread::sleep_for(milliseconds(20));
  }
}

std::optional<ExitStatus> Daemon::stop(milliseconds limit) {
  process_.value().send_signal(SIGTERM);
  return process_->wait_until(steady_clock::now() + limit);
}

void Daemon::kill() { ::kill(pid(), SIGKILL); }

ExitStatus Daemon::reap() { return process_.value().wait(); }

std::optional<ProcessId> find_process(pid_t root, const std::string& word) {
  for (ProcessId& process : descendants(root)) {
    if (process.command.find(word) != std::string::npos) {
      return std::move(process);
    }
  }
  return std::nullopt;
}

v1::Problem wire(const Problem& problem) {
  v1::Problem message;
  to_wire(problem, message);
  return message;
}

v1::DeviceClass offered_device(const Connection& connection) {
  const auto reply = connection.list_devices(kPatience);
  for (const v1::DeviceClass& device : reply.devices()) {
    if (device.offered()) {
      return device;
    }
  }
  throw std::runtime_error("no agent offers a device");
}

v1::GetVariantRequest question(const Connection& connection, const Problem& problem) {
  const v1::DeviceClass device = offered_device(connection);
  v1::GetVariantRequest request;
  request.set_kernel("scale");
  *request.mutable_problem() = wire(problem);
  *request.mutable_device()->mutable_facts() = device.facts();
  *request.mutable_device()->mutable_driver() = device.driver();
  request.set_with_plan(true);
  return request;
}

v1::TuneRequest tune_request(const std::vector<Problem>& problems) {
  v1::TuneRequest request;
  request.set_kernel("scale");
  for (const Problem& problem : problems) {
    *request.add_problems() = wire(problem);
  }
  return request;
}

std::vector<v1::TuneEvent> tune(const Connection& connection, const std::vector<Problem>& problems) {
  std::vector<v1::TuneEvent> ended;
  connection.tune(
      tune_request(problems),
      [&](const v1::TuneEvent& event) {
        const v1::Job::State state = event.job().state();
        const bool over = state == v1::Job::DONE || state == v1::Job::FAILED || state == v1::Job::CANCELLED;
        if (over || event.already_fresh()) {
          ended.push_back(event);
        }
      },
      {}, std::nullopt);
  return ended;
}

std::string export_everything(const Connection& connection) {
  v1::ExportTableRequest request;
  request.set_all_trials(true);
  request.set_include_samples(true);
  request.set_include_replayed(true);
  request.set_include_provisional(true);
  return connection.export_table(request, kPatience).json();
}

}  // namespace cubind::test
