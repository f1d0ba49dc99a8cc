// A loaded kernel with numbered arguments: its launches compare no names, take no lock and allocate nothing.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "client/arguments.hpp"
#include "client/cubin_module.hpp"
#include "client/rule.hpp"
#include "cuda_api/driver_types.hpp"

namespace cubind {

class PreparedLaunch;

/// Cheap to copy, immutable, safe on many threads.
class BoundKernel {
 public:
  static constexpr std::size_t kMaxLaunches = 32;
  static constexpr std::size_t kMaxParameters = 256;  // of all launches together

  /// The functions of the rule's launches, each once. Their order numbers the functions of a module for the
  /// rule.
  static std::vector<std::string> symbols(const Rule& rule);

  /// Throws Error(ResourceExhausted) if the kernel has more launches or parameters than the limits above.
  BoundKernel(std::shared_ptr<const Rule> rule, std::shared_ptr<CubinModule> module);

  const Rule& rule() const { return *shared_->rule; }
  /// The loaded cubin, which another rule for the same cubin may share.
  const std::shared_ptr<CubinModule>& module() const { return shared_->module; }
  /// The arguments that the caller passes; an argument's index is its number. Extents are those of the asked
  /// problem. The content of a variable is a buffer like any other.
  const std::vector<Parameter>& arguments() const { return shared_->arguments; }

  /// Enqueues the launches for the problem with these dims (in the order of rule().asked().dims) on a
  /// CUstream, and before each launch the copies of its variables' contents. A module has each variable once,
  /// so the caller must order launches with different contents on several streams. Returns false if the rule
  /// does not cover the dims: then ask the client. Throws Error(InvalidArgument) at an argument's name like
  /// pack_argument(), before anything is launched, and DriverError.
  bool launch(std::span<const std::int64_t> dims, std::span<const ArgumentValue> arguments,
              cuda::Stream stream) const;

  /// Writes to `extents` the bytes that each argument needs for these dims, 0 for a scalar. `extents` is at
  /// least as long as arguments(). Returns false if the rule does not cover the dims. Allocates nothing.
  bool extents(std::span<const std::int64_t> dims, std::span<std::uint64_t> extents) const;

  /// A launch() with everything but the arguments already computed. Absent if the rule does not cover the
  /// dims.
  std::optional<PreparedLaunch> prepare(std::span<const std::int64_t> dims) const;

 private:
  friend class PreparedLaunch;

  // The first use of an argument in the rule's launches.
  struct ParameterIndex {
    std::size_t launch = 0, parameter = 0;
  };
  // A parameter of the kernel.
  struct Passed {
    std::size_t index = 0;  // its index in the launch
    int argument = -1;      // the argument's number; -1: the parameter is computed
  };
  // An argument whose content is copied to a variable before the launch. Its size in bytes is in
  // Numbers::computed.
  struct Copied {
    std::size_t index = 0;
    std::size_t argument = 0;
    ModuleVariable to;
  };
  struct Launch {
    std::size_t function = 0;  // its number in the module
    std::size_t first = 0;     // its first index in Numbers::computed
    std::size_t parameters = 0;
    std::vector<Passed> passed = {};
    std::vector<Copied> copied = {};
  };
  // The values that depend only on the dims.
  struct Numbers {
    RuleValues values;
    std::array<LaunchShape, kMaxLaunches> shapes;
    std::array<ParameterBytes, kMaxParameters> computed;  // NOLINT: only values that launches read are set
  };
  using Packed = std::array<ParameterBytes, kMaxParameters>;  // by the arguments' numbers
  struct Shared {
    std::shared_ptr<const Rule> rule;
    std::shared_ptr<CubinModule> module;
    std::vector<Parameter> arguments;
    std::vector<ParameterIndex> first_uses;  // of the arguments
    std::vector<Launch> launches;

    void add_launch(const LaunchTemplate& from, const std::vector<std::string>& symbols);
    std::size_t number_of(const ParameterTemplate& parameter, ParameterIndex at);
    void set_extents();
    bool compute(std::span<const std::int64_t> dims, Numbers& numbers) const;
    void compute(std::size_t launch, Numbers& numbers) const;
    Packed pack(const Numbers& numbers, std::span<const ArgumentValue> given) const;
    void copy(const Launch& launch, const Numbers& numbers, const Packed& packed, cuda::Stream stream) const;
    void start(std::size_t launch, const Numbers& numbers, const Packed& packed, cuda::Stream stream) const;
    void launch(const Numbers& numbers, std::span<const ArgumentValue> given, cuda::Stream stream) const;
    ParameterBytes pack(std::size_t argument, const ArgumentValue& value, const Numbers& numbers) const;
    std::uint64_t extent_of(std::size_t argument, const RuleValues& values) const;
  };

  std::shared_ptr<const Shared> shared_;
};

/// Cheap to copy, immutable, safe on many threads.
class PreparedLaunch {
 public:
  /// Like BoundKernel::launch() for the prepared dims.
  void launch(std::span<const ArgumentValue> arguments, cuda::Stream stream) const;

 private:
  friend class BoundKernel;
  std::shared_ptr<const BoundKernel::Shared> shared_;
  std::shared_ptr<const BoundKernel::Numbers> numbers_;
};

}  // namespace cubind
