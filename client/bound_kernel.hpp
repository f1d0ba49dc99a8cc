// A loaded kernel whose arguments are numbered: launches that compare no name, take no lock and allocate
// nothing.
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

  /// The functions of the rule's launches, each once: by these a module for it is numbered.
  static std::vector<std::string> symbols(const Rule& rule);

  /// Throws Error(ResourceExhausted) for a kernel with more launches or parameters.
  BoundKernel(std::shared_ptr<const Rule> rule, std::shared_ptr<CubinModule> module);

  const Rule& rule() const { return *shared_->rule; }
  /// The loaded cubin, to be shared with another rule of it.
  const std::shared_ptr<CubinModule>& module() const { return shared_->module; }
  /// What the caller passes: an argument's place here is its number. Extents are those of the asked problem.
  /// The content of a variable is a buffer like any other.
  const std::vector<Parameter>& arguments() const { return shared_->arguments; }

  /// Launches for the problem with these dims (in the order of rule().asked().dims) on a CUstream, after the
  /// contents of variables have been copied to them there. A module has each variable once: launches with
  /// different contents on several streams have to be ordered by the caller. False if
  /// the rule does not cover them: then ask the client. Throws Error(InvalidArgument) at an argument's name
  /// as pack_argument() does, before anything is launched, and DriverError.
  bool launch(std::span<const std::int64_t> dims, std::span<const ArgumentValue> arguments,
              cuda::Stream stream) const;

  /// The bytes that each argument has to have for these dims, 0 for a scalar; `extents` is as long as
  /// arguments() or longer. False if the rule does not cover the dims. Allocates nothing.
  bool extents(std::span<const std::int64_t> dims, std::span<std::uint64_t> extents) const;

  /// A launch() with everything but the arguments computed once. Absent if the rule does not cover the dims.
  std::optional<PreparedLaunch> prepare(std::span<const std::int64_t> dims) const;

 private:
  friend class PreparedLaunch;

  // Where an argument stands in the rule's launches for the first time.
  struct Place {
    std::size_t launch = 0, parameter = 0;
  };
  // A parameter of the kernel.
  struct Passed {
    std::size_t place = 0;  // in the launch
    int argument = -1;      // its number, or -1: computed
  };
  // An argument whose content is copied to a variable before the launch. Its bytes are among the computed.
  struct Copied {
    std::size_t place = 0;
    std::size_t argument = 0;
    ModuleVariable to;
  };
  struct Launch {
    std::size_t function = 0;  // its number in the module
    std::size_t first = 0;     // of its places in Numbers::computed
    std::size_t places = 0;
    std::vector<Passed> passed = {};
    std::vector<Copied> copied = {};
  };
  // What depends on the dims alone.
  struct Numbers {
    RuleValues values;
    std::array<LaunchShape, kMaxLaunches> shapes;
    std::array<ParameterBytes, kMaxParameters> computed;  // NOLINT: filled where a launch reads it
  };
  using Packed = std::array<ParameterBytes, kMaxParameters>;  // by the arguments' numbers
  struct Shared {
    std::shared_ptr<const Rule> rule;
    std::shared_ptr<CubinModule> module;
    std::vector<Parameter> arguments;
    std::vector<Place> places;  // of the arguments
    std::vector<Launch> launches;

    void add_launch(const LaunchTemplate& from, const std::vector<std::string>& symbols);
    std::size_t number_of(const ParameterTemplate& parameter, Place place);
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
  /// Works as BoundKernel::launch().
  void launch(std::span<const ArgumentValue> arguments, cuda::Stream stream) const;

 private:
  friend class BoundKernel;
  std::shared_ptr<const BoundKernel::Shared> shared_;
  std::shared_ptr<const BoundKernel::Numbers> numbers_;
};

}  // namespace cubind
