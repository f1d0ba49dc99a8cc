// A variant in the current CUDA context, launched through the driver API.
#pragma once

#include <memory>

#include "client/answer.hpp"
#include "client/arguments.hpp"
#include "client/bound_kernel.hpp"
#include "cuda_api/driver_types.hpp"

namespace cubind {

/// Loads the cubin into the current context (the first visible device's primary context if none is current)
/// and keeps it there. launch() may be called from many threads; on one without a context it makes the
/// kernel's context current. Destroying unloads the module: no launch may be in flight then.
class LoadedKernel {
 public:
  /// Throws Error(FailedPrecondition) without a driver or if it does not load the cubin, with the driver's
  /// words. Launches of more than 48 KB of shared memory are granted theirs here.
  explicit LoadedKernel(Answer answer);
  ~LoadedKernel();
  LoadedKernel(LoadedKernel&&) noexcept;
  LoadedKernel& operator=(LoadedKernel&&) noexcept;

  const Answer& answer() const;
  /// The kernel with numbered arguments, for launches that allocate nothing. It keeps the module loaded.
  const BoundKernel& bound() const;

  /// Enqueues the launches of the plan on the stream (a CUstream; null is the default stream). Throws
  /// Error(InvalidArgument) naming a parameter that is missing, is not of the kernel, or whose pointer is
  /// null or below its alignment: a misaligned vector load would take the whole context down. Then nothing
  /// was launched.
  void launch(const Arguments& arguments, cuda::Stream stream) const;
  /// Launches another problem of the bucket with the same cubin. Error(NotFound) if the answer's rule does
  /// not cover it: then Client::get() it.
  void launch(const Problem& problem, const Arguments& arguments, cuda::Stream stream) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cubind
