#include "client/bound_kernel.hpp"

#include <algorithm>
#include <bit>
#include <bitset>
#include <sstream>

#include "base/error.hpp"
#include "launch/enqueue.hpp"
#include "launch/entry_symbols.hpp"
#include "launch/launch_fault.hpp"
#include "launch/tensor_map.hpp"

namespace cubind {
namespace {

void check_limit(std::size_t count, std::size_t limit, const std::string& kernel, const char* what) {
  if (count > limit) {
    throw Error(ErrorCode::ResourceExhausted, kernel,
                std::to_string(count) + " " + what + ", a client launches at most " + std::to_string(limit));
  }
}

std::string hex_of(cuda::DevicePtr pointer) {
  std::ostringstream text;
  text << "0x" << std::hex << pointer;
  return text.str();
}

}  // namespace

std::vector<std::string> BoundKernel::symbols(const Rule& rule) {
  return entry_symbols(rule.program().plan_template());
}

BoundKernel::BoundKernel(std::shared_ptr<const Rule> rule, std::shared_ptr<CubinModule> module) {
  auto shared = std::make_shared<Shared>();
  const std::vector<std::string> names = symbols(*rule);
  const std::vector<LaunchTemplate>& launches = rule->program().plan_template().launches;
  shared->rule = std::move(rule);
  shared->module = std::move(module);
  for (const LaunchTemplate& launch : launches) {
    shared->add_launch(launch, names);
  }
  for (const auto& [name, slot] : shared->rule->program().caller_scalars()) {
    const auto found = std::ranges::find(shared->arguments, name, &Parameter::name);
    shared->scalars.push_back({static_cast<std::size_t>(found - shared->arguments.begin()), slot});
  }
  const std::string& kernel = shared->rule->kernel();
  check_limit(launches.size(), kMaxLaunches, kernel, "launches");
  check_limit(
      shared->launches.empty() ? 0 : shared->launches.back().first + shared->launches.back().parameters,
      kMaxParameters, kernel, "parameters");
  shared->set_extents();
  shared_ = std::move(shared);
}

void BoundKernel::Shared::add_launch(const LaunchTemplate& from, const std::vector<std::string>& symbols) {
  Launch to;
  to.function = static_cast<std::size_t>(std::ranges::find(symbols, from.entry_symbol) - symbols.begin());
  to.first = launches.empty() ? 0 : launches.back().first + launches.back().parameters;
  for (const ParameterTemplate& parameter : from.parameters) {
    const ParameterIndex at{launches.size(), to.parameters++};
    if (parameter.source == ParameterSource::Value) {
      to.passed.push_back({at.parameter, -1});
    } else if (parameter.source == ParameterSource::TensorMap) {
      maps.push_back(number_of(parameter, at));
      to.passed.push_back({at.parameter, static_cast<int>(maps.back()), static_cast<int>(maps.size()) - 1});
    } else if (parameter.source != ParameterSource::Symbol) {
      to.passed.push_back({at.parameter, static_cast<int>(number_of(parameter, at))});
    } else if (parameter.role == Role::In) {
      to.copied.push_back({at.parameter, number_of(parameter, at), module->variable(parameter.symbol)});
    }
  }
  launches.push_back(std::move(to));
}

std::size_t BoundKernel::Shared::number_of(const ParameterTemplate& parameter, ParameterIndex at) {
  auto found = std::ranges::find(arguments, parameter.name, &Parameter::name);
  if (found == arguments.end()) {
    const bool buffer = is_buffer(parameter.source);
    arguments.push_back({parameter.name, buffer ? ParameterSource::Buffer : parameter.source, parameter.type,
                         parameter.role, 0, parameter.align_bytes, 0});
    first_uses.push_back(at);
    found = std::prev(arguments.end());
  }
  return static_cast<std::size_t>(found - arguments.begin());
}

void BoundKernel::Shared::set_extents() {
  RuleValues values;
  std::vector<std::int64_t> dims;
  std::ranges::transform(rule->asked().dims, std::back_inserter(dims), &NamedValue::value);
  if (!rule->evaluate(dims, values)) {
    return;  // an answer that does not hold for its own question was refused before
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    arguments[i].extent_bytes = extent_of(i, values);
  }
}

std::uint64_t BoundKernel::Shared::extent_of(std::size_t argument, const RuleValues& values) const {
  const ParameterIndex& at = first_uses[argument];
  return static_cast<std::uint64_t>(rule->program().parameter_number(at.launch, at.parameter, values.span()));
}

bool BoundKernel::Shared::compute(std::span<const std::int64_t> dims, Numbers& numbers) const {
  if (!rule->evaluate(dims, numbers.values)) {
    return false;
  }
  numbers.maps.resize(maps.size());
  for (std::size_t i = 0; i < launches.size(); ++i) {
    numbers.shapes[i] = rule->program().shape(i, numbers.values.span());
    if (!numbers.shapes[i].left_out()) {
      module->grant_shared_memory(launches[i].function, numbers.shapes[i].shared_bytes);
      compute(i, numbers);
    }
  }
  return true;
}

void BoundKernel::Shared::compute(std::size_t launch, Numbers& numbers) const {
  const PlanProgram& program = rule->program();
  const std::vector<ParameterTemplate>& parameters = program.plan_template().launches[launch].parameters;
  const Launch& to = launches[launch];
  for (const Passed& passed : to.passed) {
    if (passed.argument < 0) {
      numbers.computed[to.first + passed.index] =
          pack_number(parameters[passed.index].type,
                      program.parameter_number(launch, passed.index, numbers.values.span()));
    } else if (passed.map >= 0) {
      numbers.maps[static_cast<std::size_t>(passed.map)] =
          program.tensor_map(launch, passed.index, numbers.values.span());
    }
  }
  for (const Copied& copied : to.copied) {
    const std::int64_t bytes = program.parameter_number(launch, copied.index, numbers.values.span());
    const ParameterTemplate& parameter = parameters[copied.index];
    check_content(parameter.name, static_cast<std::uint64_t>(bytes), copied.to, parameter.variable);
    numbers.computed[to.first + copied.index] = pack_number(DType::I64, bytes);
  }
}

// Null or nothing is right for a buffer without elements: only then its extent for these dims has to be
// known.
ParameterBytes BoundKernel::Shared::pack(std::size_t argument, const ArgumentValue& value,
                                         const Numbers& numbers) const {
  const auto* pointer = std::get_if<cuda::DevicePtr>(&value);
  const bool given = pointer != nullptr ? *pointer != 0 : !std::holds_alternative<std::monostate>(value);
  if (given || arguments[argument].source != ParameterSource::Buffer) {
    return pack_argument(arguments[argument], value);
  }
  Parameter parameter = arguments[argument];
  parameter.extent_bytes = extent_of(argument, numbers.values);
  return pack_argument(parameter, value);
}

BoundKernel::Packed BoundKernel::Shared::pack(const Numbers& numbers,
                                              std::span<const ArgumentValue> given) const {
  Packed packed;  // NOLINT: filled where it is read
  std::bitset<kMaxParameters> done;
  const auto pack_once = [&](std::size_t argument) {
    if (!done[argument]) {
      packed[argument] = pack(argument, given[argument], numbers);
      done.set(argument);
    }
  };
  for (std::size_t i = 0; i < launches.size(); ++i) {
    if (numbers.shapes[i].left_out()) {
      continue;
    }
    for (const Passed& passed : launches[i].passed) {
      if (passed.argument >= 0) {
        pack_once(static_cast<std::size_t>(passed.argument));
      }
      if (passed.map >= 0) {
        std::ranges::for_each(scalars, [&](const MapScalar& scalar) { pack_once(scalar.argument); });
      }
    }
    for (const Copied& copied : launches[i].copied) {
      pack_once(copied.argument);
    }
  }
  return packed;
}

void BoundKernel::Shared::copy(const Launch& launch, const Numbers& numbers, const Packed& packed,
                               cuda::Stream stream) const {
  for (const Copied& copied : launch.copied) {
    const auto from = std::bit_cast<cuda::DevicePtr>(packed[copied.argument]);
    const auto bytes = std::bit_cast<std::uint64_t>(numbers.computed[launch.first + copied.index]);
    if (bytes == 0) {
      continue;
    }
    const cuda::Result result = module->api().memcpy_dtod_async(copied.to.address, from, bytes, stream);
    if (result != cuda::Result::Success) {
      cuda::check(module->api(), result, "copying " + arguments[copied.argument].name + " to its variable");
    }
  }
}

// The types are i32 and i64. A negative one becomes too long a stride, or stays one: the driver refuses both.
std::vector<std::int64_t> BoundKernel::Shared::with_scalars(const RuleValues& values,
                                                            const Packed& packed) const {
  std::vector<std::int64_t> all(values.span().begin(), values.span().end());
  for (const auto& [argument, slot] : scalars) {
    all[slot] = std::bit_cast<std::int64_t>(packed[argument]);
  }
  return all;
}

std::shared_ptr<const BoundKernel::Descriptors> BoundKernel::Shared::describe(const Numbers& numbers,
                                                                              const Packed& packed) const {
  auto made = std::make_shared<Descriptors>();
  std::ranges::transform(scalars, std::back_inserter(made->scalars),
                         [&](const MapScalar& scalar) { return packed[scalar.argument]; });
  const auto values = scalars.empty() ? std::vector<std::int64_t>() : with_scalars(numbers.values, packed);
  for (const std::size_t argument : maps) {
    made->buffers.push_back({argument, 0});
  }
  made->maps.resize(maps.size());
  for (std::size_t i = 0; i < launches.size(); ++i) {
    for (const Passed& passed : launches[i].passed) {
      if (passed.map < 0 || numbers.shapes[i].left_out()) {
        continue;
      }
      const auto map = static_cast<std::size_t>(passed.map);
      auto& [argument, pointer] = made->buffers[map];
      pointer = std::bit_cast<cuda::DevicePtr>(packed[argument]);
      TensorMap described = numbers.maps[map];
      if (!values.empty()) {
        rule->program().set_strides(i, passed.index, values, described);
      }
      made->maps[map] = encode(module->api(), described, pointer, arguments[argument].name);
    }
  }
  return made;
}

bool BoundKernel::Shared::is_of(const Descriptors& descriptors, const Packed& packed) const {
  const auto same = [&](const MapScalar& scalar, const ParameterBytes& bytes) {
    return packed[scalar.argument] == bytes;
  };
  return std::ranges::equal(scalars, descriptors.scalars, same) &&
         std::ranges::all_of(descriptors.buffers, [&](const CapturedBuffer& buffer) {
           return buffer.pointer == 0 ||
                  buffer.pointer == std::bit_cast<cuda::DevicePtr>(packed[buffer.argument]);
         });
}

bool BoundKernel::Shared::is_capturing(cuda::Stream stream) const {
  constexpr int kActive = 1;
  int status = 0;
  return module->api().stream_is_capturing(stream, &status) == cuda::Result::Success && status == kActive;
}

// A launch of the prepared problem leaves out what the launch before it left out.
std::shared_ptr<const BoundKernel::Descriptors> BoundKernel::Shared::describe(const Numbers& numbers,
                                                                              const Packed& packed,
                                                                              Kept& kept, bool captures,
                                                                              AfterCapture after) const {
  const std::lock_guard lock(kept.mutex);
  if (after == AfterCapture::SameBuffers && kept.captured) {
    for (const auto& [argument, pointer] : kept.captured->buffers) {
      const auto given = std::bit_cast<cuda::DevicePtr>(packed[argument]);
      if (pointer != 0 && pointer != given) {
        throw Error(ErrorCode::FailedPrecondition, "argument " + arguments[argument].name,
                    hex_of(given) + " was given, and a CUDA graph holds the tensor map of " +
                        hex_of(pointer) +
                        ", which it was captured with: prepare another launch for other buffers");
      }
    }
  }
  if (!kept.last || !is_of(*kept.last, packed)) {
    kept.last = describe(numbers, packed);
  }
  if (captures) {
    kept.captured = kept.last;
  }
  return kept.last;
}

void BoundKernel::Shared::start(std::size_t launch, const Numbers& numbers, const Packed& packed,
                                const Descriptors* descriptors, cuda::Stream stream) const {
  const Launch& from = launches[launch];
  copy(from, numbers, packed, stream);
  std::array<void*, kMaxParameters> pointers;  // NOLINT: as many as the kernel has parameters
  for (std::size_t p = 0; p < from.passed.size(); ++p) {
    const auto& [index, argument, map] = from.passed[p];
    if (map >= 0) {
      pointers[p] = const_cast<cuda::TensorMap*>(&descriptors->maps[static_cast<std::size_t>(map)]);
      continue;
    }
    const ParameterBytes& bytes =
        argument < 0 ? numbers.computed[from.first + index] : packed[static_cast<std::size_t>(argument)];
    pointers[p] = const_cast<std::byte*>(bytes.data());  // the driver reads them
  }
  const cuda::Result result = enqueue(module->api(), module->function(from.function), numbers.shapes[launch],
                                      pointers.data(), stream);
  if (result != cuda::Result::Success) {
    throw_launch_fault(module->api(), result, module->function(from.function), numbers.shapes[launch],
                       "launching " + rule->program().plan_template().launches[launch].entry);
  }
}

// Every argument is packed, and so checked, before the first launch.
void BoundKernel::Shared::launch(const Numbers& numbers, std::span<const ArgumentValue> given,
                                 cuda::Stream stream, Kept* kept, AfterCapture after) const {
  if (given.size() != arguments.size()) {
    throw Error(ErrorCode::InvalidArgument, "arguments",
                std::to_string(given.size()) + " are given, " + rule->kernel() + " takes " +
                    std::to_string(arguments.size()));
  }
  const Packed packed = pack(numbers, given);
  const CubinModule::Current current(*module);
  std::shared_ptr<const Descriptors> descriptors;
  if (!maps.empty()) {
    descriptors =
        kept ? describe(numbers, packed, *kept, is_capturing(stream), after) : describe(numbers, packed);
  }
  for (std::size_t i = 0; i < launches.size(); ++i) {
    if (!numbers.shapes[i].left_out()) {
      start(i, numbers, packed, descriptors.get(), stream);
    }
  }
}

bool BoundKernel::launch(std::span<const std::int64_t> dims, std::span<const ArgumentValue> arguments,
                         cuda::Stream stream) const {
  Numbers numbers;
  if (!shared_->compute(dims, numbers)) {
    return false;
  }
  shared_->launch(numbers, arguments, stream);
  return true;
}

bool BoundKernel::extents(std::span<const std::int64_t> dims, std::span<std::uint64_t> extents) const {
  RuleValues values;
  if (!shared_->rule->evaluate(dims, values)) {
    return false;
  }
  for (std::size_t i = 0; i < shared_->arguments.size(); ++i) {
    extents[i] = shared_->extent_of(i, values);
  }
  return true;
}

std::optional<PreparedLaunch> BoundKernel::prepare(std::span<const std::int64_t> dims) const {
  auto numbers = std::make_shared<Numbers>();
  if (!shared_->compute(dims, *numbers)) {
    return std::nullopt;
  }
  PreparedLaunch prepared;
  prepared.shared_ = shared_;
  prepared.numbers_ = std::move(numbers);
  prepared.kept_ = shared_->maps.empty() ? nullptr : std::make_shared<Kept>();
  return prepared;
}

void PreparedLaunch::launch(std::span<const ArgumentValue> arguments, cuda::Stream stream,
                            AfterCapture after) const {
  shared_->launch(*numbers_, arguments, stream, kept_.get(), after);
}

std::vector<CapturedBuffer> PreparedLaunch::captured() const {
  if (!kept_) {
    return {};
  }
  const std::lock_guard lock(kept_->mutex);
  auto buffers = kept_->captured ? kept_->captured->buffers : std::vector<CapturedBuffer>();
  std::erase_if(buffers, [](const CapturedBuffer& buffer) { return buffer.pointer == 0; });  // left out
  return buffers;
}

}  // namespace cubind
