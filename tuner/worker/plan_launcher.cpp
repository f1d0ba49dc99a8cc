#include "tuner/worker/plan_launcher.hpp"

#include <array>
#include <utility>

#include "base/error.hpp"
#include "cuda_api/shared_memory.hpp"
#include "launch/enqueue.hpp"
#include "launch/launch_fault.hpp"
#include "launch/tensor_map.hpp"

namespace cubind::worker {
namespace {

constexpr std::size_t kMaxParameters = 256;

ParameterBytes packed(const Parameter& parameter, const FindBuffer& buffer, const FindScalar& scalar) {
  switch (parameter.source) {
    case ParameterSource::Buffer:
      return pack_pointer(buffer(parameter));
    case ParameterSource::Value:
      return pack_scalar(parameter, parameter.value);
    case ParameterSource::Caller:
      return pack_scalar(parameter, scalar(parameter));
    case ParameterSource::Symbol:
    case ParameterSource::TensorMap:
      break;
  }
  throw Error(ErrorCode::Internal, "parameter " + parameter.name, "unknown source");
}

}  // namespace

std::vector<v1::LoadedEntry> loaded_entries(const LoadedModule& module) {
  std::vector<v1::LoadedEntry> entries;
  for (std::size_t i = 0; i < module.symbols().size(); ++i) {
    const auto ask = [&](cuda::FunctionAttribute which) {
      return static_cast<std::uint32_t>(module.attribute(i, which));
    };
    v1::LoadedEntry entry;
    entry.set_entry_symbol(module.symbols()[i]);
    entry.set_registers(ask(cuda::FunctionAttribute::NumRegs));
    entry.set_static_shared_bytes(ask(cuda::FunctionAttribute::SharedSizeBytes));
    entry.set_local_bytes(ask(cuda::FunctionAttribute::LocalSizeBytes));
    entry.set_max_threads_per_block(ask(cuda::FunctionAttribute::MaxThreadsPerBlock));
    entries.push_back(std::move(entry));
  }
  return entries;
}

BoundPlan::BoundPlan(const LoadedModule& module, const LaunchPlan& plan, const FindBuffer& buffer,
                     const FindScalar& scalar, cuda::Stream stream)
    : module_(module) {
  for (const Launch& launch : plan.launches) {
    BoundLaunch bound;
    bound.function = module_.number_of(launch.entry_symbol);
    bound.shape = {launch.grid, launch.block, launch.shared_bytes, launch.cluster, launch.attributes};
    for (const Parameter& parameter : launch.parameters) {
      if (parameter.source == ParameterSource::TensorMap) {
        bound.values.emplace_back(
            encode(module_.api(), parameter.tensor_map, buffer(parameter), parameter.name));
      } else if (parameter.source != ParameterSource::Symbol) {
        bound.values.emplace_back(packed(parameter, buffer, scalar));
      } else if (parameter.role == Role::In) {
        copy(parameter, buffer(parameter), stream);
      }
      if (parameter.role == Role::Zero) {
        cleared_.insert(parameter.name);
      }
    }
    if (bound.values.size() > kMaxParameters) {
      throw Error(ErrorCode::InvalidArgument, launch.entry_symbol, "more than 256 parameters");
    }
    check_block(bound);
    cuda::allow_shared_memory(module_.api(), module_.function(bound.function), bound.shape.shared_bytes,
                              launch.entry_symbol);
    launches_.push_back(std::move(bound));
  }
}

void BoundPlan::copy(const Parameter& symbol, cuda::DevicePtr content, cuda::Stream stream) const {
  const ModuleVariable variable = module_.variable(symbol.symbol);
  check_content(symbol.name, symbol.extent_bytes, variable, symbol.symbol);
  if (symbol.extent_bytes > 0) {
    cuda::check(module_.api(),
                module_.api().memcpy_dtod_async(variable.address, content, symbol.extent_bytes, stream),
                "copying " + symbol.name + " to " + symbol.symbol);
  }
}

void BoundPlan::check_block(const BoundLaunch& launch) const {
  const int most = module_.attribute(launch.function, cuda::FunctionAttribute::MaxThreadsPerBlock);
  const Dim3& block = launch.shape.block;
  const auto threads = std::uint64_t{block.x} * block.y * block.z;
  if (threads > static_cast<std::uint64_t>(most)) {
    throw Error(
        ErrorCode::FailedPrecondition, module_.symbols()[launch.function],
        "a block of " + std::to_string(threads) + " threads; its registers allow " + std::to_string(most));
  }
}

void BoundPlan::enqueue(cuda::Stream stream) const {
  for (const BoundLaunch& launch : launches_) {
    std::array<void*, kMaxParameters> parameters;  // NOLINT: as many as the launch has
    for (std::size_t i = 0; i < launch.values.size(); ++i) {
      // The driver reads them.
      parameters[i] = std::visit(
          [](const auto& value) {
            return static_cast<void*>(const_cast<std::decay_t<decltype(value)>*>(&value));
          },
          launch.values[i]);
    }
    const cuda::Result result = cubind::enqueue(module_.api(), module_.function(launch.function),
                                                launch.shape, parameters.data(), stream);
    if (result != cuda::Result::Success) {
      throw_launch_fault(module_.api(), result, module_.function(launch.function), launch.shape,
                         "launch of " + module_.symbols()[launch.function]);
    }
  }
}

}  // namespace cubind::worker
