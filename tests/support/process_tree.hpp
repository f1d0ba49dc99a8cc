// Processes as /proc tells of them.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace cubind::test {

/// The command of a device worker that waits for its first job.
inline constexpr const char* kSpareWorker = "cubind-spare";

/// One process, told apart from a later one with the same number by when it began.
struct ProcessId {
  pid_t pid = 0;
  std::uint64_t started = 0;  // clock ticks since boot
  std::string command;        // arguments, separated by spaces; kSpareWorker
};

/// Children, their children and so on; parents before their children. Zombies are left out.
std::vector<ProcessId> descendants(pid_t root);

/// False for one that has ended, also if it was not reaped.
bool is_running(const ProcessId& process);

/// Processor time of all its threads so far; zero where there is no such process.
std::chrono::nanoseconds cpu_time(pid_t pid);

/// Waits until none of them runs. Returns those that still do.
std::vector<ProcessId> wait_until_gone(std::vector<ProcessId> processes,
                                       std::chrono::milliseconds limit = std::chrono::seconds(20));

}  // namespace cubind::test
