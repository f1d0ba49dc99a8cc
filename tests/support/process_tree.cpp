#include "tests/support/process_tree.hpp"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>

namespace cubind::test {
namespace {

namespace fs = std::filesystem;

struct Stat {
  char state = '?';
  pid_t parent = 0;
  std::uint64_t started = 0;
};

// proc(5): the name in parentheses may hold anything, so the fields are counted from the last parenthesis.
std::optional<Stat> read_stat(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line)) {
    return std::nullopt;
  }
  std::istringstream fields(line.substr(line.rfind(')') + 1));
  Stat stat;
  fields >> stat.state >> stat.parent;
  std::string skipped;
  for (int field = 5; field <= 21; ++field) {
    fields >> skipped;
  }
  fields >> stat.started;
  return stat;
}

// A device worker has the same arguments as a spare one and, once it works, another name.
std::string read_command(pid_t pid) {
  std::ifstream names("/proc/" + std::to_string(pid) + "/comm");
  if (std::string name; std::getline(names, name) && name == kSpareWorker) {
    return name;
  }
  std::ifstream file("/proc/" + std::to_string(pid) + "/cmdline");
  // A process that ends meanwhile fails the read, which iterators of the stream would throw.
  std::string command;
  std::getline(file, command);
  std::ranges::replace(command, '\0', ' ');
  return command;
}

std::vector<ProcessId> children(pid_t parent) {
  std::vector<ProcessId> result;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) {
      continue;
    }
    const pid_t pid = std::stoi(name);
    const auto stat = read_stat(pid);
    if (!stat || stat->parent != parent || stat->state == 'Z') {
      continue;
    }
    result.push_back({pid, stat->started, read_command(pid)});
  }
  return result;
}

}  // namespace

std::vector<ProcessId> descendants(pid_t root) {
  std::vector<ProcessId> result = children(root);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::vector<ProcessId> more = children(result[i].pid);
    result.insert(result.end(), more.begin(), more.end());
  }
  return result;
}

bool is_running(const ProcessId& process) {
  const auto stat = read_stat(process.pid);
  return stat && stat->started == process.started && stat->state != 'Z' && stat->state != 'X';
}

std::chrono::nanoseconds cpu_time(pid_t pid) {
  clockid_t clock{};
  timespec used{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &used) != 0) {
    return {};
  }
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

std::vector<ProcessId> wait_until_gone(std::vector<ProcessId> processes, std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (true) {
    std::erase_if(processes, [](const ProcessId& process) { return !is_running(process); });
    if (processes.empty() || std::chrono::steady_clock::now() >= deadline) {
      return processes;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace cubind::test
