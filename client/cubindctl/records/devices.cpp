// cubindctl devices, status and health.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.hpp"
#include "base/text.hpp"
#include "client/connection.hpp"
#include "client/cubindctl/commands.hpp"
#include "client/cubindctl/reply_json.hpp"
#include "client/cubindctl/terminal/terminal.hpp"
#include "client/cubindctl/terminal/text_table.hpp"
#include "client/cubindctl/terminal/text_wrap.hpp"

namespace cubind::ctl {
namespace {

void print(const google::protobuf::RepeatedPtrField<v1::DeviceClass>& devices) {
  TextTable table({"DEVICE", "?CC", ">?SMS", ">?MEMORY", ">RECORDS", ">?SHIPPED", "STATE", "??CONSENT",
                   "?DRIVER", "AGENT"});
  for (const v1::DeviceClass& device : devices) {
    const v1::DeviceFacts& facts = device.facts();
    table.add({device.label(), std::to_string(facts.cc_major()) + "." + std::to_string(facts.cc_minor()),
               std::to_string(facts.sm_count()), size_text(facts.memory_bytes()),
               std::to_string(device.records() - device.shipped_records()),
               std::to_string(device.shipped_records()), device.offered() ? device.state() : "not here",
               device.offered() ? device.consent() : "-",
               device.driver().version().empty() ? "-" : device.driver().version(),
               device.agent().empty() ? "-" : device.agent()});
  }
  table.print(std::cout, output_columns());
}

std::string duration_text(std::uint64_t milliseconds) {
  const std::uint64_t seconds = milliseconds / 1000;
  if (seconds < 60) {
    return std::to_string(seconds) + " s";
  }
  if (seconds < 3600) {
    return std::to_string(seconds / 60) + " min";
  }
  return std::to_string(seconds / 3600) + " h";
}

std::string toolchains_text(const v1::GetStatusReply& status) {
  if (!status.toolchains().empty()) {
    return join(status.toolchains(), ", ");
  }
  return status.agents() == 0
             ? "none: no agent is connected"
             : "none: name a CUDA toolkit by CUBIND_CUDA_HOME and start cubind again; the log says "
               "where NVRTC was searched";
}

std::string saved_text(const v1::Savings& saved) {
  return fixed(saved.compile_ms() / 1000, 1) + " s of compiling and " + fixed(saved.tuning_ms() / 1000, 1) +
         " s of tuning since " + saved.since().substr(0, 10) + ", measured for " +
         std::to_string(saved.timed()) + " of " + counted(saved.answers(), "answer") +
         " that gave a process a new cubin";
}

std::string pinned_text(const v1::PinnedJob& job, std::uint64_t newest) {
  return job.job() + (job.namespace_().empty() ? "" : " in " + job.namespace_()) + ": generation " +
         std::to_string(job.generation()) +
         (job.generation() == newest ? ", the newest"
                                     : ", " + std::to_string(newest - job.generation()) + " behind") +
         (job.processes() == 0 ? "" : "; processes that asked: " + std::to_string(job.processes()));
}

// A name of at most 10 characters, and what there is to say.
std::string cubins_text(const v1::GetStatusReply& status) {
  const std::string limit =
      status.cubin_limit_bytes() == 0 ? "" : " of " + size_text(status.cubin_limit_bytes());
  return size_text(status.cubin_bytes()) + limit + ", " + std::to_string(status.cubins_evicted()) +
         " evicted";
}

void print_line(const std::string& name, const std::string& text) {
  constexpr std::size_t kIndent = 12;
  const std::size_t columns = output_columns();
  std::cout << name << std::string(kIndent - name.size(), ' ')
            << wrapped_under(text, columns > 2 * kIndent ? columns - kIndent : 0, std::string(kIndent, ' '))
            << "\n";
}

void print(const v1::GetStatusReply& status, const std::string& address) {
  const auto count = [](std::uint64_t number) { return std::to_string(number); };
  std::cout << wrapped("cubind " + status.version() + " at " + address + ", up " +
                           duration_text(status.uptime_ms()),
                       output_columns(), "        ")
            << "\n";
  const bool is_away = status.read_only() && status.store_bytes() == 0;  // nothing can be counted there
  print_line("store", status.store_path() + ", " + (is_away ? "" : size_text(status.store_bytes()) + ", ") +
                          "generation " + count(status.generation().number()));
  if (status.read_only()) {
    print_line("READ ONLY", status.read_only_reason());
  }
  if (status.store_lag_ms() > 0) {
    print_line("shared with", status.peers().empty()
                                  ? "no other daemon now"
                                  : join(status.peers(), ", ") + "; their changes were read " +
                                        duration_text(status.store_lag_ms()) + " ago");
  }
  if (!is_away) {
    print_line("cubins", cubins_text(status));
  }
  print_line("holds", counted(status.kernels(), "kernel") + ", " +
                          counted(status.records() - status.shipped_records(), "record") +
                          (status.shipped_records() == 0
                               ? ""
                               : " and " + count(status.shipped_records()) + " that came with cubind") +
                          (is_away ? "" : ", " + counted(status.artifacts(), "artifact")));
  print_line("jobs", count(status.jobs_running()) + " running, " + count(status.jobs_queued()) + " queued");
  print_line("questions", count(status.hits()) + " hits, " + count(status.misses()) + " misses, " +
                              count(status.misses_wanted()) + " of them wanted");
  if (const v1::Savings& saved = status.saved(); saved.answers() > 0) {
    print_line("saved", saved_text(saved));
  }
  for (const v1::PinnedJob& job : status.pinned()) {
    print_line("pinned", pinned_text(job, status.generation().number()));
  }
  print_line("toolchains", toolchains_text(status));
  print_line("agents", count(status.agents()));
  for (const std::string& reason : status.no_device_because()) {
    print_line("no GPU", reason);
  }
  for (const std::string& lack : status.sandbox_lacks()) {
    print_line("sandbox", lack);
  }
  for (const std::string& error : status.kernel_errors()) {
    print_line("BAD SPEC", error);
  }
  if (status.damaged_rows() > 0) {
    print_line("DAMAGED",
               counted(status.damaged_rows(), "row") + " of the store left out; the daemon's log names them");
  }
}

}  // namespace

ExitCode run(const DevicesOptions&, const CommonOptions& common) {
  const v1::ListDevicesReply reply =
      Connection(resolve_address(common.address)).list_devices(common.deadline());
  if (common.json) {
    OutputJson devices = OutputJson::array();
    for (const v1::DeviceClass& device : reply.devices()) {
      devices.push_back(json_of(device));
    }
    print_json({{"devices", devices}});
  } else {
    print(reply.devices());
  }
  return ExitCode::Ok;
}

ExitCode run(const StatusOptions&, const CommonOptions& common) {
  const Connection connection(resolve_address(common.address));
  const v1::GetStatusReply status = connection.get_status(common.deadline());
  if (common.json) {
    print_json(json_of(status));
    return ExitCode::Ok;
  }
  print(status, connection.address());
  if (status.devices_size() > 0) {
    std::cout << "\n";
    print(status.devices());
  }
  return ExitCode::Ok;
}

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kBetweenQuestions{50};
// The rest of the time after the last question.
constexpr milliseconds kLastQuestion{100};

milliseconds until(steady_clock::time_point end) {
  return std::chrono::ceil<milliseconds>(end - steady_clock::now());
}

/// Asks until the daemon serves and has its own agent; no question outlasts `patience`. Says whether it
/// served when it was asked last, and throws Error(Unavailable) where that was not answered.
bool serves_within(const Connection& connection, const CommonOptions& common, milliseconds patience) {
  const auto end = steady_clock::now() + patience;
  const auto limit = [&] { return std::min(common.deadline(), until(end)); };
  while (true) {
    const bool is_last = until(end) < kBetweenQuestions + kLastQuestion;
    try {
      const bool serves = connection.is_serving(limit());
      if (is_last || (serves && !connection.get_status(limit()).agent_expected())) {
        return serves;
      }
    } catch (const Error& error) {
      const bool is_late = error.code() == ErrorCode::DeadlineExceeded;
      if (is_last && is_late) {
        throw Error(ErrorCode::Unavailable, connection.address(), "the daemon there does not answer in time");
      }
      if (is_last || (error.code() != ErrorCode::Unavailable && !is_late)) {
        throw;
      }
    }
    std::this_thread::sleep_for(kBetweenQuestions);
  }
}

}  // namespace

ExitCode run(const HealthOptions& options, const CommonOptions& common) {
  const Connection connection(resolve_address(common.address));
  const bool serving = options.wait_s == 0
                           ? connection.is_serving(common.deadline())
                           : serves_within(connection, common, std::chrono::seconds(options.wait_s));
  if (common.json) {
    print_json({{"serving", serving}});
  } else {
    std::cout << (serving ? "serving" : "not serving") << "\n";
  }
  return serving ? ExitCode::Ok : ExitCode::Unavailable;
}

}  // namespace cubind::ctl
