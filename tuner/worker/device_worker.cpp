#include "tuner/worker/device_worker.hpp"

#include <sys/prctl.h>

#include <chrono>
#include <exception>
#include <memory>

#include "base/error.hpp"
#include "base/framing.hpp"
#include "base/text.hpp"

namespace cubind::worker {
namespace {

// NVML's utilization is that of up to a second before.
constexpr std::uint32_t kRestedMs = 2000;

Lend lend_of(const v1::DeviceRequest& request) {
  Lend lend;
  for (const v1::Lender& lender : request.lenders()) {
    lend.lenders.push_back({lender.pid(), lender.memory_bytes()});
  }
  lend.rested = request.rested_ms() > kRestedMs;
  return lend;
}

v1::DeviceReply answer(const v1::DeviceRequest& request, DeviceBackend& device) {
  for (const std::uint32_t trial : request.unload()) {
    device.unload(trial);
  }
  device.set_lend(lend_of(request));
  switch (request.body_case()) {
    case v1::DeviceRequest::kOpen:
      return device.open(request.open());
    case v1::DeviceRequest::kPrepare:
      return device.prepare(request.prepare());
    case v1::DeviceRequest::kLoad:
      return device.load(request.load());
    case v1::DeviceRequest::kVerify:
      return device.verify(request.verify());
    case v1::DeviceRequest::kMeasure:
      return device.measure(request.measure());
    case v1::DeviceRequest::kRelease:
      return device.release(request.release());
    case v1::DeviceRequest::kProbe:
      return device.probe(request.probe());
    case v1::DeviceRequest::BODY_NOT_SET:
      break;
  }
  throw Error(ErrorCode::InvalidArgument, "device worker",
              "a request without a body that this version knows");
}

// One of the two places in the process that turn exceptions into data.
v1::DeviceReply answer_or_fault(const std::string& frame, DeviceBackend& device) {
  v1::DeviceReply fault;
  try {
    v1::DeviceRequest request;
    if (!request.ParseFromString(frame)) {
      throw Error(ErrorCode::DataLoss, "device worker", "a frame that is not a DeviceRequest");
    }
    return answer(request, device);
  } catch (const std::exception& error) {
    fault.set_outcome(v1::OUTCOME_UNSPECIFIED);
    fault.set_detail(valid_utf8(error.what()));
  }
  return fault;
}

// A worker may wait for days as a spare one, which its name among the processes says. What it replays is read
// as it is when it is wanted.
std::unique_ptr<DeviceBackend> device_when_wanted(int fd, const std::vector<std::string>& arguments,
                                                  const MakeReplay& make_replay) {
  ::prctl(PR_SET_NAME, "cubind-spare");
  std::unique_ptr<DeviceBackend> device = arguments.empty() ? make_cuda_device() : nullptr;
  wait_readable(fd, SteadyDeadline::max());
  ::prctl(PR_SET_NAME, "cubind-worker");
  return device ? std::move(device) : make_replay(arguments);
}

}  // namespace

ExitCode serve_device(int fd, DeviceBackend& device) {
  while (const auto frame = read_frame(fd, kMaxRequestBytes)) {
    const v1::DeviceReply reply = answer_or_fault(*frame, device);
    write_frame(fd, reply.SerializeAsString());
    if (reply.sticky()) {
      return ExitCode::ContextLost;
    }
  }
  return ExitCode::Done;
}

ExitCode run_device_worker(int fd, const std::vector<std::string>& arguments, const MakeReplay& make_replay) {
  if (!arguments.empty() && arguments.front() != "--replay") {
    throw Error(ErrorCode::InvalidArgument, "cubind-worker device",
                "unknown option \"" + arguments.front() + "\"; --replay TABLE must come first");
  }
  return serve_device(fd, *device_when_wanted(fd, arguments, make_replay));
}

}  // namespace cubind::worker
