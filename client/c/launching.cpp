// cubind.h: kernels in a CUDA context, and their launches.
#include <algorithm>
#include <memory>
#include <span>

#include "base/text.hpp"
#include "client/c/calling.hpp"
#include "client/c/handles.hpp"

namespace cubind::c {
namespace {

std::vector<std::size_t> functions_of(const Answer& answer) {
  const std::vector<std::string> symbols = BoundKernel::symbols(*answer.rule());
  std::vector<std::size_t> functions;
  for (const Launch& launch : answer.plan().launches) {
    functions.push_back(
        static_cast<std::size_t>(std::ranges::find(symbols, launch.entry_symbol) - symbols.begin()));
  }
  return functions;
}

std::vector<std::int64_t> dims_of(const Answer& answer, const std::int64_t* dims, std::size_t count) {
  std::vector<std::int64_t> own = dim_values(answer.problem());
  if (dims == nullptr) {
    return own;
  }
  if (count != own.size()) {
    throw Error(ErrorCode::InvalidArgument, "dims",
                std::to_string(count) + " are given, " + answer.kernel() + " has " +
                    std::to_string(own.size()) + ": " + to_string(answer.problem()));
  }
  return {dims, dims + count};
}

std::string listed(std::span<const std::int64_t> dims) {
  std::string text;
  for (const std::int64_t dim : dims) {
    text += (text.empty() ? "" : ", ") + std::to_string(dim);
  }
  return text;
}

cubind_binding make_binding(const LoadedKernel& loaded, std::span<const std::int64_t> dims) {
  const BoundKernel& bound = loaded.bound();
  std::optional<PreparedLaunch> prepared = bound.prepare(dims);
  std::vector<std::uint64_t> extents(bound.arguments().size());
  if (!prepared || !bound.extents(dims, extents)) {
    throw Error(ErrorCode::NotFound, "dims",
                "the answer for " + to_string(loaded.answer().problem()) + " does not reach " + listed(dims) +
                    ": ask the client for it");
  }
  cubind_binding binding{std::move(*prepared), bound.arguments(), {}};
  for (std::size_t i = 0; i < extents.size(); ++i) {
    binding.arguments[i].extent_bytes = extents[i];
  }
  binding.values.resize(extents.size());
  return binding;
}

std::size_t number_of(const cubind_binding* binding, const char* name) {
  const std::vector<Parameter>& arguments = given(binding, "binding").arguments;
  const std::string_view wanted = &given(name, "name");
  const auto found = std::ranges::find(arguments, wanted, &Parameter::name);
  if (found == arguments.end()) {
    std::vector<std::string> known;
    std::ranges::transform(arguments, std::back_inserter(known), &Parameter::name);
    throw Error(ErrorCode::InvalidArgument, "argument " + std::string(wanted),
                "the kernel takes no such argument" + suggestion(std::string(wanted), known));
  }
  return static_cast<std::size_t>(found - arguments.begin());
}

void set(cubind_binding* binding, const char* name, const ArgumentValue& value) {
  const std::size_t argument = number_of(binding, name);
  binding->values[argument] = value;
}

}  // namespace
}  // namespace cubind::c

using namespace cubind::c;  // NOLINT(google-build-using-namespace): the functions below have C's names

cubind_code cubind_load(const cubind_variant* variant, cubind_kernel** kernel) {
  return guarded([&] {
    cubind_kernel*& to = given(kernel, "kernel");
    const cubind::Answer& answer = given(variant, "variant").answer;
    to = new cubind_kernel{cubind::LoadedKernel(answer), functions_of(answer)};
  });
}

void cubind_kernel_free(cubind_kernel* kernel) { delete kernel; }

cubind_code cubind_kernel_module(const cubind_kernel* kernel, CUmod_st** module) {
  return guarded(
      [&] { given(module, "module") = given(kernel, "kernel").loaded.bound().module()->handle(); });
}

cubind_code cubind_kernel_function(const cubind_kernel* kernel, size_t launch, CUfunc_st** function) {
  return guarded([&] {
    CUfunc_st*& to = given(function, "function");
    check_index(launch, given(kernel, "kernel").functions.size(), "launch");
    to = kernel->loaded.bound().module()->function(kernel->functions[launch]);
  });
}

cubind_code cubind_bind(const cubind_kernel* kernel, const int64_t* dims, size_t count,
                        cubind_binding** binding) {
  return guarded([&] {
    cubind_binding*& to = given(binding, "binding");
    const cubind::LoadedKernel& loaded = given(kernel, "kernel").loaded;
    to = new cubind_binding(make_binding(loaded, dims_of(loaded.answer(), dims, count)));
  });
}

void cubind_binding_free(cubind_binding* binding) { delete binding; }

size_t cubind_binding_arguments(const cubind_binding* binding) {
  return gotten([&] { return given(binding, "binding").arguments.size(); });
}

cubind_code cubind_binding_argument(const cubind_binding* binding, size_t argument, cubind_parameter* info) {
  return guarded([&] {
    const std::vector<cubind::Parameter>& arguments = given(binding, "binding").arguments;
    check_index(argument, arguments.size(), "argument");
    write_known(info, described(arguments[argument]), "info");
  });
}

cubind_code cubind_set_buffer(cubind_binding* binding, const char* name, const void* device_memory) {
  const auto address = static_cast<cubind::cuda::DevicePtr>(reinterpret_cast<std::uintptr_t>(device_memory));
  return guarded([&] { set(binding, name, address); });
}

cubind_code cubind_set_float(cubind_binding* binding, const char* name, double value) {
  return guarded([&] { set(binding, name, value); });
}

cubind_code cubind_set_integer(cubind_binding* binding, const char* name, int64_t value) {
  return guarded([&] { set(binding, name, value); });
}

cubind_code cubind_launch(const cubind_binding* binding, CUstream_st* stream) {
  return guarded([&] { given(binding, "binding").prepared.launch(binding->values, stream); });
}

cubind_code cubind_binding_captured(const cubind_binding* binding, const char* name,
                                    const void** device_memory) {
  return guarded([&] {
    const void*& to = given(device_memory, "device_memory");
    const std::size_t argument = number_of(binding, name);
    to = nullptr;
    for (const cubind::CapturedBuffer& buffer : binding->prepared.captured()) {
      if (buffer.argument == argument) {
        to = reinterpret_cast<const void*>(buffer.pointer);  // NOLINT: the driver's address
      }
    }
  });
}
