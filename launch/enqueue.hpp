#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "cuda_api/driver_api.hpp"
#include "cuda_api/driver_types.hpp"
#include "plan/plan_program.hpp"

namespace cubind {

/// Enqueues a launch with attributes, which the driver copies.
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

/// Writes the attributes of a launch to `to`, and returns how many there are.
inline std::size_t attributes_of(const LaunchShape& shape, std::span<cuda::LaunchAttribute, 4> to) {
  std::size_t count = 0;
  const auto add = [&](cuda::LaunchAttributeId id, unsigned x, unsigned y = 0, unsigned z = 0) {
    to[count++] = {id, {x, y, z}};
  };
  if (shape.cluster) {
    add(cuda::LaunchAttributeId::ClusterDimension, shape.cluster->x, shape.cluster->y, shape.cluster->z);
  }
  if (shape.attributes.cooperative) {
    add(cuda::LaunchAttributeId::Cooperative, 1);
  }
  if (shape.attributes.programmatic_stream_serialization) {
    add(cuda::LaunchAttributeId::ProgrammaticStreamSerialization, 1);
  }
  if (shape.attributes.priority != 0) {
    add(cuda::LaunchAttributeId::Priority, static_cast<unsigned>(shape.attributes.priority));
  }
  return count;
}

/// Enqueues one launch. `parameters` point to ParameterBytes, one for each parameter of the kernel. The
/// caller checks the result, so that a successful launch formats no text.
inline cuda::Result enqueue(const cuda::DriverApi& api, cuda::Function function, const LaunchShape& shape,
                            void** parameters, cuda::Stream stream) {
  if (shape.cluster || shape.attributes != LaunchAttributes{}) {
    std::array<cuda::LaunchAttribute, 4> attributes;  // NOLINT: as many as there are
    const std::size_t count = attributes_of(shape, attributes);
    return enqueue(api, function, shape, std::span(attributes).first(count), parameters, stream);
  }
  return api.launch_kernel(function, shape.grid.x, shape.grid.y, shape.grid.z, shape.block.x, shape.block.y,
                           shape.block.z, static_cast<unsigned>(shape.shared_bytes), stream, parameters,
                           nullptr);
}

}  // namespace cubind
