// The table of docs/faults.md on the replay device, row by row with one daemon: real processes, and a real
// compiler where the fault is the compiler's.
#include <signal.h>

#include <catch2/catch.hpp>
#include <map>
#include <stop_token>
#include <thread>

#include "base/file.hpp"
#include "plan/wire.hpp"
#include "tests/support/daemon_fixture.hpp"
#include "tests/support/fault_table.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/process_tree.hpp"

namespace cubind::test {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kRunDeadline{1500};
constexpr milliseconds kCompileDeadline{60'000}, kShortCompileDeadline{3000};

/// Runs instead of the agent's program: gives it a deadline, and a full disk if it is to have one.
constexpr const char* kAgent = R"sh(#!/bin/sh
folder=$(dirname "$0")
if [ -e "$folder/disk_full" ]; then
  trap '' XFSZ
  ulimit -f 0
  exec >/dev/full 2>&1
fi
exec "@AGENT@" "$@" --compile-deadline-ms "$(cat "$folder/deadline")"
)sh";

class FaultyDaemon {
 public:
  FaultyDaemon()
      : daemon_({.folder = folder_.path() / "daemon",
                 .kernels = {faulty_kernel_folder()},
                 .replay = folder_.path() / "table.json",
                 .faults = faults_file(),
                 .arguments = {"--agent-program", (folder_.path() / "agent").string(), "--compile-jobs", "2"},
                 .environment = {"CUBIND_RUN_DEADLINE_MS=" + std::to_string(kRunDeadline.count())}}) {
    write_file_atomic(folder_.path() / "table.json", print_table(faulty_table()));
    std::string agent = kAgent;
    write_file_atomic(folder_.path() / "agent",
                      agent.replace(agent.find("@AGENT@"), 7, bin_dir() / "cubind-agent"));
    fs::permissions(folder_.path() / "agent", fs::perms::owner_all);
    set_compile_deadline(kCompileDeadline);
    inject("");
    daemon_.start();
  }

  Daemon& operator*() { return daemon_; }
  Daemon* operator->() { return &daemon_; }

  /// From the next device worker on. The elements of the list of faults.
  void inject(const std::string& faults, int pace_us = 0) {
    fs::remove_all(faults_file().string() + ".used");
    write_file_atomic(faults_file(), R"({"driver": ")" + driver_ + R"(", "pace_us": )" +
                                         std::to_string(pace_us) + R"(, "faults": [)" + faults + "]}\n");
  }
  /// With nothing injected.
  void restart_with_driver(const std::string& driver) {
    daemon_.stop();
    driver_ = driver;
    inject("");
    daemon_.start();
  }
  /// How often the first of the injected faults has happened.
  std::size_t happened() const {
    const fs::path counter = fs::path(faults_file().string() + ".used") / "0";
    return fs::exists(counter) ? fs::file_size(counter) : 0;
  }
  /// Both for the next agent.
  void fill_disk() { write_file_atomic(folder_.path() / "disk_full", ""); }
  void set_compile_deadline(milliseconds deadline) {
    write_file_atomic(folder_.path() / "deadline", std::to_string(deadline.count()));
  }
  void restart_agent() {
    const auto before = find_process(daemon_.pid(), "cubind-agent");
    REQUIRE(before);
    ::kill(before->pid, SIGKILL);
    REQUIRE(eventually([&] {
      const auto now = find_process(daemon_.pid(), "cubind-agent");
      return now && now->pid != before->pid && daemon_.connect().get_status(kPatience).agents() == 1;
    }));
  }
  /// Sends SIGSEGV to the compile worker that computes for a second from now on.
  void crash_compiler(const std::stop_token& stop) const {
    std::map<pid_t, std::chrono::nanoseconds> before;
    while (!stop.stop_requested()) {
      for (const ProcessId& process : descendants(daemon_.pid())) {
        if (process.command.find("cubind-worker compile") == std::string::npos) {
          continue;
        }
        const auto used = cpu_time(process.pid);
        if (used - before.emplace(process.pid, used).first->second > std::chrono::seconds(1)) {
          ::kill(process.pid, SIGSEGV);
          return;
        }
      }
      std::this_thread::sleep_for(milliseconds(20));
    }
  }
  /// False: it does not exist.
  bool kill_process(const std::string& word) const {
    const auto found = find_process(daemon_.pid(), word);
    return found && ::kill(found->pid, SIGKILL) == 0;
  }

 private:
  fs::path faults_file() const { return folder_.path() / "faults.json"; }

  TempDir folder_{"cubind-faults"};
  std::string driver_ = "580.159.04";
  Daemon daemon_;
};

std::string at_its_configuration(const FaultRow& row) {
  const std::string number = std::to_string(static_cast<int>(row.fault));
  return "{" + row.injected + R"(, "configuration": {"FAULT": )" + number + "}}";
}

v1::TuneEvent met(FaultyDaemon& daemon, const FaultRow& row) {
  constexpr int kSlow = 40'000;  // so that the process is there to be killed
  const Connection connection = daemon->connect();
  if (row.fault == Fault::GpuLost) {
    daemon.inject(R"({"at": "open", "fault": "gpu_lost", "times": 2},
                     {"at": "measure", "fault": "gpu_lost", "times": 1})");
    v1::TuneEvent end = tune_faulty(connection, row.fault);
    CHECK(daemon.happened() == 2);
    return end;
  }
  if (row.fault == Fault::CompilerCrash) {
    const std::jthread crash([&](const std::stop_token& stop) { daemon.crash_compiler(stop); });
    return tune_faulty(connection, row.fault);
  }
  if (row.fault == Fault::WorkerKilled || row.fault == Fault::AgentKilled) {
    const std::string victim = row.fault == Fault::AgentKilled ? "cubind-agent" : "cubind-worker device";
    daemon.inject("", kSlow);
    bool killed = false;
    v1::TuneEvent end = tune_faulty(connection, row.fault, [&](const v1::TuneEvent& event) {
      killed = killed || (event.job().state() == v1::Job::RUNNING && daemon.kill_process(victim));
    });
    CHECK(killed);
    return end;
  }
  if (row.fault == Fault::CompilerHang) {
    daemon.set_compile_deadline(kShortCompileDeadline);
    daemon.restart_agent();
    v1::TuneEvent end = tune_faulty(daemon->connect(), row.fault);
    daemon.set_compile_deadline(kCompileDeadline);
    daemon.restart_agent();
    return end;
  }
  if (row.fault == Fault::DiskFull) {
    daemon.fill_disk();
    daemon.restart_agent();
  }
  daemon.inject(row.injected.empty() ? "" : at_its_configuration(row));
  return tune_faulty(daemon->connect(), row.fault);
}

void check_row(FaultyDaemon& daemon, const FaultRow& row) {
  const v1::TuneEvent end = met(daemon, row);
  INFO(row.name << ": " << end.ShortDebugString());
  const bool is_innocent = row.outcome == Outcome::Correct;
  REQUIRE(end.job().state() == v1::Job::DONE);
  CHECK(configuration_from_wire(end.winner(), "winner") ==
        (is_innocent ? broken_configuration(row.fault) : right_winner()));
  const std::uint32_t good = count_of(end, Outcome::Correct) + count_of(end, Outcome::Unverified);
  CHECK(good == (is_innocent ? 4 : 3));
  CHECK((is_innocent || count_of(end, row.outcome) == 1));
}

/// With its message, by those whom it concerns.
void check_memory(FaultyDaemon& daemon, const FaultRow& row) {
  INFO(row.name);
  const auto trial = stored_trial(daemon->connect(), row.fault);
  if (row.fault == Fault::OutOfMemory) {
    CHECK_FALSE(trial);
    return;
  }
  REQUIRE(trial);
  // Bits that differ within the tolerance are right for all who do not ask for the same ones.
  CHECK(trial->outcome == (row.fault == Fault::OtherBits ? Outcome::Correct : row.outcome));
  CHECK_THAT(trial->header.detail(), Catch::Contains(row.words));
}

TEST_CASE("every row of the fault table ends with its outcome and the right winner and the same daemon") {
  FaultyDaemon daemon;
  const auto began = steady_clock::now();
  for (const FaultRow& row : fault_table()) {
    check_row(daemon, row);
    check_memory(daemon, row);
  }
  const auto took = std::chrono::duration_cast<milliseconds>(steady_clock::now() - began);
  CHECK(daemon->connect().get_status(kPatience).uptime_ms() >= static_cast<std::uint64_t>(took.count()));
}

TEST_CASE("the documented fault table has every row with its outcome") {
  const std::string text = read_file(source_dir() / "docs" / "faults.md");
  for (const FaultRow& row : fault_table()) {
    const std::string outcome =
        row.outcome == Outcome::Correct ? "none" : "`" + std::string(to_string(row.outcome)) + "`";
    INFO(row.name << " with " << outcome);
    CHECK(text.find("\n| " + row.name + " | " + outcome) != std::string::npos);
  }
}

TEST_CASE("a fault is remembered by a new daemon and until the driver branch changes") {
  const FaultRow& row = fault_table().at(static_cast<std::size_t>(Fault::IllegalAddress) - 1);
  REQUIRE(row.fault == Fault::IllegalAddress);
  FaultyDaemon daemon;
  daemon.inject(at_its_configuration(row));
  CHECK(count_of(tune_faulty(daemon->connect(), row.fault), Outcome::Runtime) == 1);
  const auto again = [&](const std::string& driver) {
    daemon.restart_with_driver(driver);
    v1::TuneRequest request;
    request.set_kernel("faulty");
    *request.add_problems() = wire(faulty_problem(row.fault));
    request.set_retune(true);
    v1::TuneEvent end;
    daemon->connect().tune(
        request, [&](const v1::TuneEvent& event) { end = event; }, {}, std::nullopt);
    return configuration_from_wire(end.winner(), "winner");
  };
  CHECK(again("580.200.01") == right_winner());
  CHECK(again("590.10") == broken_configuration(row.fault));
}

}  // namespace
}  // namespace cubind::test
