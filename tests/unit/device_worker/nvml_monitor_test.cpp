#include "tuner/worker/nvml_monitor.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>

#include "base/file.hpp"
#include "base/unique_fd.hpp"

namespace cubind::worker {
namespace {

using cuda::NvmlDevice;
using cuda::NvmlProcess;
using cuda::NvmlProcessSample;
using cuda::NvmlResult;
using std::chrono::seconds;

constexpr std::uint32_t kNobody = 1U << 30;  // more than any process number

// What NVML says.
struct Nvml {
  std::vector<std::uint32_t> listed{};
  std::vector<NvmlProcessSample> samples{};
  NvmlResult sampled = NvmlResult::Success;
  unsigned busy_percent = 0;
};
Nvml nvml;

NvmlResult list(NvmlDevice, unsigned* count, NvmlProcess* to) {
  *count = static_cast<unsigned>(nvml.listed.size());
  std::ranges::transform(nvml.listed, to, [](std::uint32_t pid) { return NvmlProcess{pid, 0, 0, 0}; });
  return NvmlResult::Success;
}

// As NVML does: without room it says how much is needed, and without samples that it has found none.
NvmlResult sample(NvmlDevice, NvmlProcessSample* to, unsigned* count, unsigned long long) {
  const std::size_t room = to == nullptr ? 0 : *count;
  *count = static_cast<unsigned>(nvml.samples.size());
  if (nvml.sampled != NvmlResult::Success) {
    return nvml.sampled;
  }
  if (nvml.samples.empty()) {
    return NvmlResult::NotFound;
  }
  if (room < nvml.samples.size()) {
    return NvmlResult::InsufficientSize;
  }
  std::ranges::copy(nvml.samples, to);
  return NvmlResult::Success;
}

NvmlResult utilization(NvmlDevice, cuda::NvmlUtilization* to) {
  to->gpu = nvml.busy_percent;
  return NvmlResult::Success;
}

NvmlProcessSample work_of(std::uint32_t process, seconds ago) {
  const auto at = std::chrono::system_clock::now() - ago;
  const auto us = std::chrono::duration_cast<std::chrono::microseconds>(at.time_since_epoch()).count();
  return {process, static_cast<unsigned long long>(us), 30, 10, 0, 0};
}

// The other process on the GPU is this one, which has a device file open.
struct NvmlFixture {
  TempDir folder;
  std::string device_files = (folder.path() / "nvidia").string();
  UniqueFd file;
  cuda::NvmlApi api;
  OwnProcesses own{.device_files = device_files};
  std::uint32_t process = static_cast<std::uint32_t>(::getpid());

  NvmlFixture() {
    file.reset(::open((device_files + "0").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    api.device_get_compute_processes = list;
    api.device_get_process_utilization = sample;
    api.device_get_utilization = utilization;
    nvml = {.listed = {process}};
  }

  /// As a worker finds it that has no context yet.
  std::string others() const {
    const NvmlMonitor monitor(&api, reinterpret_cast<NvmlDevice>(1), own);  // NOLINT: never dereferenced
    GpuUse use = monitor.use();
    const Consent consent(use);
    use.idle = monitor.idle_times(use.processes);
    return consent.others(use, 0, true);
  }
  std::string in_use() const {
    return "process " + std::to_string(process) + " uses the GPU (end it, or tune from within it)";
  }
};

TEST_CASE_METHOD(NvmlFixture, "a process of our user that has not worked for ten seconds is no other user") {
  CHECK(others().empty());
  nvml.samples = {work_of(process, seconds(11)), work_of(kNobody, seconds(0))};
  CHECK(others().empty());
}

TEST_CASE_METHOD(NvmlFixture, "a process that works is another user until it has been idle for ten seconds") {
  nvml.samples = {work_of(process, seconds(2))};
  CHECK(others() == "process " + std::to_string(process) +
                        " uses the GPU (end it, tune from within it, or leave it idle for 8 s more)");
}

TEST_CASE_METHOD(NvmlFixture, "a sample that shows no work is none") {
  NvmlProcessSample idle = work_of(process, seconds(1));
  idle.sm = idle.memory = 0;
  nvml.samples = {idle, work_of(process, seconds(11))};
  CHECK(others().empty());
}

TEST_CASE_METHOD(NvmlFixture, "where NVML does not tell when processes work an idle one is another user") {
  nvml.sampled = GENERATE(NvmlResult::NotSupported, NvmlResult::NoPermission, NvmlResult::InsufficientSize);
  CHECK(others() == in_use());
  api.device_get_process_utilization = nullptr;
  CHECK(others() == in_use());
}

TEST_CASE_METHOD(NvmlFixture, "an idle process of another user is another user") {
  ++own.user;
  CHECK(others() == in_use());
}

TEST_CASE_METHOD(NvmlFixture, "a listed number that has no GPU open here is that of another pid namespace") {
  file.reset();
  CHECK(others() == in_use());
}

TEST_CASE_METHOD(NvmlFixture, "next to an idle process another one is named") {
  nvml.listed.push_back(kNobody);
  CHECK(others() == "process " + std::to_string(kNobody) + " uses the GPU (end it, or tune from within it)");
}

TEST_CASE_METHOD(NvmlFixture, "work of a process that NVML does not list may be that of a listed one") {
  nvml.samples = {work_of(0, seconds(1))};
  CHECK(others() == in_use());
}

TEST_CASE_METHOD(NvmlFixture, "a GPU that is busy is in use though no process has worked") {
  nvml.busy_percent = 60;
  CHECK(others() ==
        "the GPU is busy (60 %), but by NVML's account every process on it is idle (end them, or tune from "
        "within the process)");
}

}  // namespace
}  // namespace cubind::worker
