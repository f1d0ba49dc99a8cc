#include "tuner/worker/plan_launcher.hpp"

#include <cmath>
#include <cstring>
#include <utility>

#include "base/error.hpp"
#include "cuda_api/shared_memory.hpp"
#include "tuner/plan/wire.hpp"
#include "tuner/verify/element.hpp"

namespace cubind::worker {
namespace {

template <typename T>
std::array<std::byte, 8> pack(T value) {
  static_assert(sizeof(T) <= 8);
  std::array<std::byte, 8> bytes{};
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

std::array<unsigned, 3> sizes(const v1::Dim3& dim) { return {dim.x(), dim.y(), dim.z()}; }

int attribute(const cuda::DriverApi& api, cuda::Function function, cuda::FunctionAttribute which) {
  int value = 0;
  cuda::check(api, api.func_get_attribute(&value, which, function), "cuFuncGetAttribute");
  return value;
}

template <typename T>
std::array<std::byte, 8> pack_integer(const v1::Parameter& parameter, std::int64_t value) {
  if (!std::in_range<T>(value)) {
    throw Error(ErrorCode::InvalidArgument, "parameter " + parameter.name(),
                std::to_string(value) + " does not fit " + parameter.type());
  }
  return pack(static_cast<T>(value));
}

}  // namespace

std::array<std::byte, 8> pack_scalar(const v1::Parameter& parameter, std::int64_t value) {
  switch (const DType type = dtype_from_wire(parameter.type(), "parameter " + parameter.name()); type) {
    case DType::I64:
      return pack(value);
    case DType::I32:
      return pack_integer<std::int32_t>(parameter, value);
    case DType::I8:
      return pack_integer<std::int8_t>(parameter, value);
    case DType::U8:
      return pack_integer<std::uint8_t>(parameter, value);
    default:
      return pack_scalar(parameter, static_cast<double>(value));
  }
}

std::array<std::byte, 8> pack_scalar(const v1::Parameter& parameter, double value) {
  const DType type = dtype_from_wire(parameter.type(), "parameter " + parameter.name());
  if (is_floating(type)) {
    std::array<std::byte, 8> bytes{};
    verify::store_element(type, bytes, 0, value);
    return bytes;
  }
  if (!(std::fabs(value) < 0x1p63) || value != std::floor(value)) {
    throw Error(ErrorCode::InvalidArgument, "parameter " + parameter.name(),
                std::to_string(value) + " is not a value of type " + parameter.type());
  }
  return pack_scalar(parameter, static_cast<std::int64_t>(value));
}

LoadedCubin::LoadedCubin(const DriverContext& context, const std::string& cubin,
                         const std::vector<std::string>& symbols)
    : api_(context.api()), symbols_(symbols) {
  cuda::check(api_, api_.module_load_data(&module_, cubin.data()), "cuModuleLoadData");
  for (const std::string& symbol : symbols_) {
    cuda::Function function = nullptr;
    if (const cuda::Result result = api_.module_get_function(&function, module_, symbol.c_str());
        result != cuda::Result::Success) {
      api_.module_unload(module_);
      throw cuda::DriverError(api_, result, "symbol " + symbol + " of the cubin");
    }
    functions_[symbol] = function;
  }
}

LoadedCubin::~LoadedCubin() { api_.module_unload(module_); }

cuda::Function LoadedCubin::function(const std::string& symbol) const {
  const auto found = functions_.find(symbol);
  if (found == functions_.end()) {
    throw Error(ErrorCode::InvalidArgument, "launch plan", "symbol \"" + symbol + "\" was not loaded");
  }
  return found->second;
}

std::vector<v1::LoadedEntry> LoadedCubin::entries() const {
  std::vector<v1::LoadedEntry> entries;
  for (const std::string& symbol : symbols_) {
    const cuda::Function function = functions_.at(symbol);
    const auto ask = [&](cuda::FunctionAttribute which) {
      return static_cast<std::uint32_t>(attribute(api_, function, which));
    };
    v1::LoadedEntry entry;
    entry.set_entry_symbol(symbol);
    entry.set_registers(ask(cuda::FunctionAttribute::NumRegs));
    entry.set_static_shared_bytes(ask(cuda::FunctionAttribute::SharedSizeBytes));
    entry.set_local_bytes(ask(cuda::FunctionAttribute::LocalSizeBytes));
    entry.set_max_threads_per_block(ask(cuda::FunctionAttribute::MaxThreadsPerBlock));
    entries.push_back(std::move(entry));
  }
  return entries;
}

BoundPlan::BoundPlan(const DriverContext& context, const LoadedCubin& cubin, const v1::LaunchPlan& plan,
                     const FindBuffer& buffer, const FindScalar& scalar)
    : api_(context.api()) {
  for (const v1::Launch& launch : plan.launches()) {
    BoundLaunch bound;
    bound.symbol = launch.entry_symbol();
    bound.function = cubin.function(launch.entry_symbol());
    bound.grid = sizes(launch.grid());
    bound.block = sizes(launch.block());
    bound.shared_bytes = static_cast<unsigned>(launch.shared_bytes());
    for (const v1::Parameter& parameter : launch.parameters()) {
      switch (parameter.source()) {
        case v1::Parameter::BUFFER:
          bound.values.push_back(pack(buffer(parameter)));
          break;
        case v1::Parameter::VALUE:
          bound.values.push_back(pack_scalar(parameter, parameter.value()));
          break;
        case v1::Parameter::CALLER:
          bound.values.push_back(pack_scalar(parameter, scalar(parameter)));
          break;
        default:
          throw Error(ErrorCode::Unimplemented, "parameter " + parameter.name(),
                      "not supported by this worker");
      }
    }
    check_block(bound);
    cuda::allow_shared_memory(api_, bound.function, bound.shared_bytes, bound.symbol);
    launches_.push_back(std::move(bound));
  }
}

void BoundPlan::check_block(const BoundLaunch& launch) const {
  const int most = attribute(api_, launch.function, cuda::FunctionAttribute::MaxThreadsPerBlock);
  const auto threads = std::uint64_t{launch.block[0]} * launch.block[1] * launch.block[2];
  if (threads > static_cast<std::uint64_t>(most)) {
    throw Error(
        ErrorCode::FailedPrecondition, launch.symbol,
        "a block of " + std::to_string(threads) + " threads; its registers allow " + std::to_string(most));
  }
}

void BoundPlan::enqueue(cuda::Stream stream) const {
  for (const BoundLaunch& launch : launches_) {
    std::array<void*, 256> arguments{};
    if (launch.values.size() > arguments.size()) {
      throw Error(ErrorCode::InvalidArgument, launch.symbol, "more than 256 parameters");
    }
    for (std::size_t i = 0; i < launch.values.size(); ++i) {
      arguments[i] = const_cast<std::byte*>(launch.values[i].data());
    }
    cuda::check(api_,
                api_.launch_kernel(launch.function, launch.grid[0], launch.grid[1], launch.grid[2],
                                   launch.block[0], launch.block[1], launch.block[2], launch.shared_bytes,
                                   stream, arguments.data(), nullptr),
                "launch of " + launch.symbol);
  }
}

}  // namespace cubind::worker
