#include "tests/support/replay_faults.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <limits>
#include <thread>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/json.hpp"
#include "base/json_node.hpp"
#include "base/unique_fd.hpp"

namespace cubind::test {
namespace {

std::vector<NamedValue> read_values(const JsonNode& fault, std::string_view key) {
  std::vector<NamedValue> values;
  if (!fault.contains(key)) {
    return values;
  }
  for (const JsonNode& member : fault.at(key).members()) {
    values.push_back({member.key(), member.as_int64()});
  }
  return values;
}

bool all_among(const std::vector<NamedValue>& wanted, const std::vector<NamedValue>& values) {
  return std::ranges::all_of(wanted,
                             [&](const NamedValue& value) { return std::ranges::count(values, value) > 0; });
}

}  // namespace

ReplayFaults ReplayFaults::read(const std::string& file) {
  const OrderedJson document = parse_json_strict(read_file(file), file);
  const JsonNode root(document, file);
  root.expect_keys({"pace_us", "hold", "log", "lock", "free_memory_bytes", "driver", "users", "faults"});
  ReplayFaults faults;
  faults.file_ = file;
  faults.pace_ = std::chrono::microseconds(root.int64_or("pace_us", 0));
  if (root.contains("free_memory_bytes")) {
    faults.free_memory_ = static_cast<std::uint64_t>(
        root.at("free_memory_bytes").as_int64(1, std::numeric_limits<std::int64_t>::max()));
  }
  faults.hold_ = root.string_or("hold", "");
  faults.log_ = root.string_or("log", "");
  faults.lock_ = root.string_or("lock", "");
  faults.driver_ = root.string_or("driver", "");
  if (root.contains("users")) {
    for (const JsonNode& user : root.at("users").elements()) {
      faults.users_.push_back(static_cast<std::uint32_t>(user.as_int64(1, 1 << 22)));
    }
  }
  if (!root.contains("faults")) {
    return faults;
  }
  for (const JsonNode& node : root.at("faults").elements()) {
    node.expect_keys({"at", "fault", "configuration", "problem", "times"});
    Fault fault;
    fault.point =
        static_cast<FaultPoint>(node.at("at").as_choice({"prepare", "load", "verify", "measure", "open"}));
    fault.kind = static_cast<FaultKind>(node.at("fault").as_choice(
        {"hang", "illegal_address", "misaligned_address", "assert", "trap", "gpu_lost", "out_of_memory",
         "launch", "too_many_registers", "wrong_result", "other_bits", "foreign_process", "contended"}));
    fault.configuration = read_values(node, "configuration");
    fault.dims = read_values(node, "problem");
    if (node.contains("times")) {
      fault.times = node.at("times").as_int64(1, 1'000'000);
    }
    faults.faults_.push_back(std::move(fault));
  }
  return faults;
}

void ReplayFaults::wait_while_held() const {
  while (!hold_.empty() && !std::filesystem::exists(hold_)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

// A process that has ended but was not waited for has no context any more.
std::vector<std::uint32_t> ReplayFaults::living_users() const {
  std::vector<std::uint32_t> living;
  std::ranges::copy_if(users_, std::back_inserter(living), [](std::uint32_t user) {
    std::error_code none;
    return std::filesystem::exists("/proc/" + std::to_string(user) + "/exe", none);
  });
  return living;
}

// One write of a whole line: several workers may append to the same log.
void ReplayFaults::log(const std::string& line) const {
  if (log_.empty()) {
    return;
  }
  const UniqueFd fd(::open(log_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  const std::string text = line + ' ' + std::to_string(::getpid()) + '\n';
  if (!fd || ::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    throw Error(ErrorCode::Unavailable, log_, "cannot append to the log of the replay device");
  }
}

std::optional<FaultKind> ReplayFaults::take(FaultPoint point, const Problem& problem,
                                            const Configuration* configuration) const {
  for (std::size_t i = 0; i < faults_.size(); ++i) {
    const Fault& fault = faults_[i];
    if (fault.point != point || !all_among(fault.dims, problem.dims)) {
      continue;
    }
    if (!fault.configuration.empty() &&
        (!configuration || !all_among(fault.configuration, configuration->values))) {
      continue;
    }
    if (use(i)) {
      return fault.kind;
    }
  }
  return std::nullopt;
}

// A counter that outlives the process, since a fault often ends it: the file's length is the count.
bool ReplayFaults::use(std::size_t index) const {
  const std::optional<std::int64_t>& times = faults_[index].times;
  if (!times) {
    return true;
  }
  const std::filesystem::path folder = file_ + ".used";
  std::filesystem::create_directories(folder);
  const std::filesystem::path counter = folder / std::to_string(index);
  const UniqueFd fd(::open(counter.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  if (fd.get() < 0 || ::lseek(fd.get(), 0, SEEK_END) >= *times) {
    return false;
  }
  return ::write(fd.get(), "x", 1) == 1;
}

}  // namespace cubind::test
