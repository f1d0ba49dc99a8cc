#include "tuner/worker/device_outcome.hpp"

namespace cubind::worker {

DeviceFailure classify(const cuda::DriverError& error) {
  DeviceFailure failure;
  failure.detail = error.what();
  failure.sticky = cuda::is_sticky(error.result());
  if (error.result() == cuda::Result::OutOfMemory) {
    failure.outcome = v1::OUT_OF_MEMORY;
  } else if (error.result() == cuda::Result::LaunchTimeout) {
    failure.outcome = v1::TIMEOUT;
  } else if (failure.sticky) {
    failure.outcome = v1::RUNTIME;
  }
  return failure;
}

std::optional<DeviceFailure> current_failure() {
  try {
    throw;
  } catch (const cuda::DriverError& error) {
    return classify(error);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::FailedPrecondition) {
      return std::nullopt;
    }
    return DeviceFailure{v1::LAUNCH, error.what(), false};
  } catch (...) {
    return std::nullopt;
  }
}

void report(const DeviceFailure& failure, v1::DeviceReply& reply) {
  reply.set_outcome(failure.outcome);
  reply.set_detail(failure.detail);
  reply.set_sticky(failure.sticky);
}

}  // namespace cubind::worker
