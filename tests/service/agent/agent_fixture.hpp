// An agent's executable that replays a table, and the daemon's side of its stream.
#pragma once

#include <unistd.h>

#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/subprocess.hpp"
#include "tests/service/agent/agent_daemon.hpp"
#include "tests/service/agent/replayed_kernel.hpp"
#include "tests/support/paths.hpp"

namespace cubind::test {

// This process's own.
inline std::vector<std::string> agent_environment() {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    result.emplace_back(*entry);
  }
  return result;
}

// An agent that replays the table, and the daemon that it works for.
struct AgentFixture {
  explicit AgentFixture(const std::string& faults = "{}", std::vector<std::string> more = {},
                        const std::string& table = replayed_table()) {
    write_file_atomic(folder.path() / "table.json", table);
    set_faults(faults);
    SubprocessOptions options;
    options.program = (bin_dir() / "cubind-agent").string();
    options.arguments = {"--address",         daemon.address(),
                         "--replay",          (folder.path() / "table.json").string(),
                         "--worker",          faulty_worker().string(),
                         "--compile-jobs",    "2",
                         "--run-deadline-ms", "1000",
                         "--idle-poll-ms",    "50"};
    options.arguments.insert(options.arguments.end(), more.begin(), more.end());
    options.environment = agent_environment();
    options.environment.push_back("CUBIND_REPLAY_FAULTS=" + faults_file());
    agent.emplace(Subprocess::spawn(options));
  }

  std::string faults_file() const { return (folder.path() / "faults.json").string(); }
  void set_faults(const std::string& faults) { write_file_atomic(faults_file(), faults); }

  v1::OfferedDevice device() {
    const auto hello = daemon.hello();
    REQUIRE(hello);
    REQUIRE(hello->hello().devices_size() == 1);
    return hello->hello().devices(0);
  }
  v1::LeaseGrant lease() { return replayed_lease(device()); }
  void grant(const v1::LeaseGrant& lease) {
    v1::DaemonMessage message;
    *message.mutable_lease() = lease;
    daemon.send(message);
  }
  v1::JobResult run() { return run(lease()); }
  v1::JobResult run(const v1::LeaseGrant& lease) {
    grant(lease);
    const auto result = daemon.result();
    REQUIRE(result);
    return result->result();
  }
  // Of the whole conversation so far.
  v1::Batch stored() const {
    v1::Batch all;
    for (const v1::AgentMessage& message : daemon.messages()) {
      if (message.has_batch()) {
        all.MergeFrom(message.batch());
      }
    }
    return all;
  }
  void wait_for_stage(const std::string& stage) {
    REQUIRE(daemon.find([&](const auto& message) { return message.progress().stage() == stage; }));
  }

  TempDir folder;
  AgentDaemon daemon;
  std::optional<Subprocess> agent;
};

}  // namespace cubind::test
