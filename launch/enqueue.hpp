#pragma once

#include <span>

#include "cuda_api/driver_api.hpp"
#include "cuda_api/driver_types.hpp"
#include "plan/plan_program.hpp"

namespace cubind {

/// Enqueues one launch. `parameters` point to ParameterBytes, one for each parameter of the kernel. The
/// caller checks the result, so that a successful launch formats no text.
inline cuda::Result enqueue(const cuda::DriverApi& api, cuda::Function function, const LaunchShape& shape,
                            void** parameters, cuda::Stream stream) {
  return api.launch_kernel(function, shape.grid.x, shape.grid.y, shape.grid.z, shape.block.x, shape.block.y,
                           shape.block.z, static_cast<unsigned>(shape.shared_bytes), stream, parameters,
                           nullptr);
}

/// The same with attributes, which the driver copies.
inline cuda::Result enqueue(const cuda::DriverApi& api, cuda::Function function, const LaunchShape& shape,
                            std::span<cuda::LaunchAttribute> attributes, void** parameters,
                            cuda::Stream stream) {
  const cuda::LaunchConfig config{shape.grid.x,
                                  shape.grid.y,
                                  shape.grid.z,
                                  shape.block.x,
                                  shape.block.y,
                                  shape.block.z,
                                  static_cast<unsigned>(shape.shared_bytes),
                                  stream,
                                  attributes.data(),
                                  static_cast<unsigned>(attributes.size())};
  return api.launch_kernel_ex(&config, function, parameters, nullptr);
}

}  // namespace cubind
