// A variant in the current CUDA context, launched through the driver API.
#pragma once

#include <memory>

#include "client/answer.hpp"
#include "client/arguments.hpp"
#include "client/bound_kernel.hpp"
#include "cuda_api/driver_types.hpp"

namespace cubind {

/// Loads the cubin into the current context (the first visible device's primary context if none is current)
/// and keeps it there. launch() may be called from many threads; on a thread without a context it makes the
/// kernel's context current. The destructor unloads the module; no launch may be in flight then.
class LoadedKernel {
 public:
  /// Throws Error(FailedPrecondition) with the driver's message if there is no driver or it does not load the
  /// cubin. Raises the shared memory limit of launches that need more than 48 KB.
  explicit LoadedKernel(Answer answer);
  ~LoadedKernel();
  LoadedKernel(LoadedKernel&&) noexcept;
  LoadedKernel& operator=(LoadedKernel&&) noexcept;

  const Answer& answer() const;
  /// The kernel with numbered arguments, whose launches allocate nothing. It keeps the module loaded.
  const BoundKernel& bound() const;

  /// Enqueues the launches of the plan on the stream (a CUstream; null is the default stream). If a parameter
  /// is missing, unknown, or has a null or misaligned pointer, throws Error(InvalidArgument) with its name
  /// and launches nothing: a misaligned vector load would destroy the context.
  void launch(const Arguments& arguments, cuda::Stream stream) const;
  /// Launches another problem of the bucket with the same cubin. Throws Error(NotFound) if the answer's rule
  /// does not cover the problem: then ask Client::get().
  void launch(const Problem& problem, const Arguments& arguments, cuda::Stream stream) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cubind
