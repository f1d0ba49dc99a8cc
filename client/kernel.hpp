// A variant in the current CUDA context, launched through the driver API.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "client/answer.hpp"
#include "cuda_api/driver_types.hpp"

namespace cubind {

/// Arguments by the names of the kernel spec. What the launch plan computes (dims, strides) is not passed.
class Arguments {
 public:
  /// Device memory of at least the parameter's extent; scratch buffers too.
  Arguments& buffer(std::string_view name, cuda::DevicePtr pointer);
  Arguments& buffer(std::string_view name, const void* pointer);
  /// Converted to the parameter's type.
  Arguments& scalar(std::string_view name, double value);
  Arguments& scalar(std::string_view name, std::int64_t value);

 private:
  friend class LoadedKernel;
  struct Entry {
    std::string name;
    std::variant<cuda::DevicePtr, double, std::int64_t> value;
  };
  std::vector<Entry> entries_;
};

/// Loads the cubin into the current context (the device's primary context where none is current) and keeps it there.
/// launch() may be called from many threads; destroying unloads the module.
class LoadedKernel {
 public:
  /// Throws Error(FailedPrecondition) without a driver or where it does not load the cubin, with the driver's words.
  explicit LoadedKernel(Answer answer);
  ~LoadedKernel();
  LoadedKernel(LoadedKernel&&) noexcept;
  LoadedKernel& operator=(LoadedKernel&&) noexcept;

  const Answer& answer() const;

  /// Enqueues the launches of the plan on the stream. Throws Error(InvalidArgument) naming a parameter that is missing, is not
  /// of the kernel, or whose pointer is null or below its alignment: a misaligned vector load would take the whole context down.
  void launch(const Arguments& arguments, cuda::Stream stream) const;
  /// The same for another problem of the bucket, with the same cubin. Error(NotFound) where the answer's rule does not cover it.
  void launch(const Problem& problem, const Arguments& arguments, cuda::Stream stream) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cubind
