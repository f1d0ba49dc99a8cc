// The meaning of a failed driver call for the configuration that caused it.
#pragma once

#include <exception>
#include <optional>
#include <string>

#include "cuda_api/driver_api.hpp"
#include "schemas/worker.pb.h"

namespace cubind::worker {

struct DeviceFailure {
  v1::Outcome outcome = v1::LAUNCH;
  std::string detail;
  bool sticky = false;
};

/// OUT_OF_MEMORY; TIMEOUT for the driver's own watchdog; RUNTIME, sticky, for a kernel's fault; else LAUNCH.
DeviceFailure classify(const cuda::DriverError& error);

/// The current exception as a failure: a DriverError, or a FailedPrecondition (what the plan asks for, this
/// GPU does not give). Absent: the caller's mistake or a fault of the worker, to be thrown on.
std::optional<DeviceFailure> current_failure();

void report(const DeviceFailure& failure, v1::DeviceReply& reply);

}  // namespace cubind::worker
