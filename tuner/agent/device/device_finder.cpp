#include "tuner/agent/device/device_finder.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "cuda_api/device_facts.hpp"
#include "plan/facts/gpu_facts.hpp"
#include "tuner/agent/device/worker_link.hpp"
#include "tuner/agent/lease/job_stop.hpp"
#include "tuner/verify/setup_memory.hpp"

namespace cubind {
namespace {

constexpr int kLooksAtStopMs = 50;
constexpr std::size_t kMaxReason = 1000;

// In a process of its own: cuInit maps gigabytes of address space and holds the device files open for as long
// as it lives.
v1::FoundGpus ask_for_gpus(const AgentOptions& options, Spawner& spawner, const std::stop_token& stop) {
  SubprocessOptions child;
  child.program = canonical_path("/proc/self/exe").string();
  child.arguments = {"--list-devices", "--log-level", options.log_level};
  if (options.memory_fraction > 0) {
    child.arguments.insert(child.arguments.end(),
                           {"--memory-fraction", std::to_string(options.memory_fraction)});
  }
  for (const std::string& gpu : options.gpus) {
    child.arguments.insert(child.arguments.end(), {"--gpus", gpu});
  }
  child.environment = own_environment();
  child.stdout_to = ChildStream::Pipe;
  Subprocess process = spawner.spawn(child);
  v1::FoundGpus found;
  const auto printed = output_of(process, std::chrono::steady_clock::now() + options.deadlines.open, stop);
  const ExitStatus status = process.wait();
  if (!printed || !status.success() || !found.ParseFromString(*printed)) {
    found.Clear();
    const std::string cut =
        stop.stop_requested() ? ": the agent ends" : ": the driver did not answer in time";
    found.set_none_because("the GPUs of this machine cannot be listed: " + status.describe() +
                           (printed ? "" : cut));
  }
  return found;
}

// A loader's and a driver's words have lines.
std::string as_reason(std::string words) {
  return cut_utf8(one_line(valid_utf8(std::move(words))), kMaxReason);
}

std::string no_visible_gpu() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return std::string("the driver shows no GPU") +
         (visible ? " (CUDA_VISIBLE_DEVICES=" + quoted(visible) + ")" : "");
}

void add_gpus(const std::vector<std::string>& gpus, double memory_fraction, v1::FoundGpus& found) {
  std::string why, tried;
  const auto driver = cuda::find_driver(why);
  if (!driver) {
    found.set_none_because(why);
    return;
  }
  const auto nvml = cuda::find_nvml(tried);
  std::vector<cuda::DeviceOrdinal> devices;
  if (gpus.empty()) {
    devices = cuda::visible_devices(*driver);
  }
  for (const std::string& gpu : gpus) {
    devices.push_back(cuda::select_device(*driver, gpu));
  }
  if (devices.empty()) {
    found.set_none_because(no_visible_gpu());
  }
  const cuda::DriverVersion version = cuda::read_driver_version(*driver, nvml.get());
  for (const cuda::DeviceOrdinal device : devices) {
    const cuda::DeviceFacts facts = cuda::read_device_facts(*driver, nvml.get(), device);
    v1::OfferedDevice& offer = *found.add_devices();
    offer.set_uuid(facts.uuid);
    facts_to_wire(facts, *offer.mutable_facts());
    offer.mutable_driver()->set_cuda(version.cuda);
    offer.mutable_driver()->set_version(version.version);
    if (!nvml) {
      continue;
    }
    const cuda::NvmlDevice handle = cuda::find_nvml_device(*driver, *nvml, device);
    offer.set_trial_memory_bytes(
        verify::memory_share(memory_fraction, cuda::free_memory_bytes(*nvml, handle)));
  }
}

LocalDevice open_replay(const AgentOptions& options, const std::string& table, Spawner& spawner) {
  LocalDevice device;
  device.open.set_memory_fraction(options.memory_fraction);
  device.worker_arguments = {"--replay", absolute_path(table).string()};
  const WorkerStarter starter(spawner, options.worker_program.string(), device.worker_arguments, {});
  WorkerLink link(starter);
  JobStop stop;
  RemoteDevice remote(link, device.open, stop, options.deadlines);
  remote.probe();
  const v1::DeviceInfo& info = remote.info();
  device.offer.set_uuid(info.uuid());
  *device.offer.mutable_facts() = info.facts();
  *device.offer.mutable_driver() = info.driver();
  *device.offer.mutable_recorded() = info.recorded();
  device.offer.set_consent(consent_text(options.tune_when, info.consent_rule()));
  device.offer.set_trial_memory_bytes(
      verify::memory_share(options.memory_fraction, info.free_memory_bytes()));
  return device;
}

}  // namespace

std::string consent_text(TuneWhen when, const std::string& rule) {
  if (when == TuneWhen::Never) {
    return "never";
  }
  const std::string word = when == TuneWhen::Always ? "always" : "idle";
  return rule.empty() ? word : word + " (" + rule + ")";
}

std::string list_gpus(const std::vector<std::string>& gpus, double memory_fraction) {
  v1::FoundGpus found;
  try {
    add_gpus(gpus, memory_fraction, found);
  } catch (const Error& error) {
    found.Clear();
    found.set_none_because(valid_utf8(error.what()));
  }
  return found.SerializeAsString();
}

std::optional<std::string> output_of(Subprocess& child, std::chrono::steady_clock::time_point deadline,
                                     const std::stop_token& stop) {
  const int fd = child.stdout_pipe().get();
  std::string result;
  char buffer[4096];
  while (!stop.stop_requested() && std::chrono::steady_clock::now() < deadline) {
    pollfd ready{fd, POLLIN, 0};
    if (::poll(&ready, 1, kLooksAtStopMs) <= 0) {
      continue;
    }
    const ssize_t count = ::read(fd, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      return result;
    }
    result.append(buffer, static_cast<std::size_t>(count));
  }
  child.kill_group();
  return std::nullopt;
}

FoundDevices find_devices(const AgentOptions& options, Spawner& spawner, const std::stop_token& stop) {
  if (options.tune_when == TuneWhen::Never) {
    return {{}, "--tune-when never gives no consent to measure"};
  }
  std::vector<LocalDevice> devices;
  std::set<std::string> seen;
  for (const std::string& table : options.replay) {
    try {
      LocalDevice device = open_replay(options, table, spawner);
      if (seen.insert(device.offer.uuid()).second) {
        devices.push_back(std::move(device));
      }
    } catch (const Error& error) {
      log_error("the table " + table + " cannot be replayed: " + error.what());
    }
  }
  if (!options.replay.empty() && options.gpus.empty()) {
    const char* none_because = devices.empty() ? "no table of --replay can be replayed" : "";
    return {std::move(devices), none_because};
  }
  const v1::FoundGpus found = ask_for_gpus(options, spawner, stop);
  for (const v1::OfferedDevice& offer : found.devices()) {
    if (!seen.insert(offer.uuid()).second) {
      continue;
    }
    LocalDevice device;
    device.offer = offer;
    device.offer.set_consent(consent_text(options.tune_when, ""));
    device.open.set_gpu(offer.uuid());
    device.open.set_timer(options.timer);
    device.open.set_memory_fraction(options.memory_fraction);
    device.worker_environment = gpu_environment(offer.uuid());
    devices.push_back(std::move(device));
  }
  const std::string none_because = devices.empty() ? as_reason(found.none_because()) : "";
  return {std::move(devices), none_because};
}

std::vector<std::string> gpu_environment(const std::string& uuid) {
  return {"CUDA_VISIBLE_DEVICES=" + uuid, "CUDA_DEVICE_MAX_CONNECTIONS=1"};
}

std::map<std::string, std::uint64_t> trial_memory(const AgentOptions& options, Spawner& spawner,
                                                  const std::stop_token& stop) {
  std::map<std::string, std::uint64_t> result;
  try {
    const FoundDevices found = find_devices(options, spawner, stop);
    if (found.devices.empty() && !stop.stop_requested()) {
      log_warning("the devices' free memory is not known: " + found.none_because);
    }
    for (const LocalDevice& device : found.devices) {
      result[device.offer.uuid()] = device.offer.trial_memory_bytes();
    }
  } catch (const Error& error) {
    log_warning("the devices' free memory is not known: " + std::string(error.what()));
  }
  return result;
}

}  // namespace cubind
