// A loaded kernel with numbered arguments: its launches compare no names, take no lock and allocate nothing.
// Only with tensor maps, a launch that is not prepared allocates, and a prepared one takes a lock and
// allocates where its pointers, or the scalars that strides read, differ from those of the launch before.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
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

/// A buffer whose tensor map a CUDA graph holds.
struct CapturedBuffer {
  std::size_t argument = 0;  // its number
  cuda::DevicePtr pointer = 0;
  bool operator==(const CapturedBuffer&) const = default;
};

/// What a launch does whose kernel has tensor maps and that was captured before with other buffers: a graph
/// keeps the 128 bytes of a tensor map, and with them the pointer.
enum class AfterCapture : std::uint8_t {
  SameBuffers,  // throws Error(FailedPrecondition) at the argument's name
  AnyBuffers,   // launches: the caller knows what the graph holds
};

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
    int map = -1;           // the number of the argument's tensor map; -1: the argument itself is passed
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
    std::vector<TensorMap> maps;                          // by their numbers
  };
  using Packed = std::array<ParameterBytes, kMaxParameters>;  // by the arguments' numbers
  // By the numbers of the tensor maps; those of launches that are left out are not set.
  struct Descriptors {
    std::vector<CapturedBuffer> buffers;
    std::vector<cuda::TensorMap> maps;
    std::vector<ParameterBytes> scalars;  // as in Shared
  };
  // A caller's scalar that strides of tensor maps read.
  struct MapScalar {
    std::size_t argument = 0, slot = 0;
  };
  // What a prepared launch keeps of its tensor maps: the descriptors of the last launch, and of the last one
  // that was captured.
  struct Kept {
    std::mutex mutex;
    std::shared_ptr<const Descriptors> last, captured;  // guarded by mutex
  };
  struct Shared {
    std::shared_ptr<const Rule> rule;
    std::shared_ptr<CubinModule> module;
    std::vector<Parameter> arguments;
    std::vector<ParameterIndex> first_uses;  // of the arguments
    std::vector<Launch> launches;
    std::vector<std::size_t> maps;  // of each tensor map: the number of its buffer's argument
    std::vector<MapScalar> scalars;

    void add_launch(const LaunchTemplate& from, const std::vector<std::string>& symbols);
    std::size_t number_of(const ParameterTemplate& parameter, ParameterIndex at);
    void set_extents();
    bool compute(std::span<const std::int64_t> dims, Numbers& numbers) const;
    void compute(std::size_t launch, Numbers& numbers) const;
    Packed pack(const Numbers& numbers, std::span<const ArgumentValue> given) const;
    void copy(const Launch& launch, const Numbers& numbers, const Packed& packed, cuda::Stream stream) const;
    void start(std::size_t launch, const Numbers& numbers, const Packed& packed,
               const Descriptors* descriptors, cuda::Stream stream) const;
    void launch(const Numbers& numbers, std::span<const ArgumentValue> given, cuda::Stream stream,
                Kept* kept = nullptr, AfterCapture after = AfterCapture::AnyBuffers) const;
    std::vector<std::int64_t> with_scalars(const RuleValues& values, const Packed& packed) const;
    std::shared_ptr<const Descriptors> describe(const Numbers& numbers, const Packed& packed) const;
    std::shared_ptr<const Descriptors> describe(const Numbers& numbers, const Packed& packed, Kept& kept,
                                                bool captures, AfterCapture after) const;
    bool is_of(const Descriptors& descriptors, const Packed& packed) const;
    bool is_capturing(cuda::Stream stream) const;
    ParameterBytes pack(std::size_t argument, const ArgumentValue& value, const Numbers& numbers) const;
    std::uint64_t extent_of(std::size_t argument, const RuleValues& values) const;
  };

  std::shared_ptr<const Shared> shared_;
};

/// Cheap to copy, safe on many threads. Copies share what they hold of tensor maps.
class PreparedLaunch {
 public:
  /// Like BoundKernel::launch() for the prepared dims.
  void launch(std::span<const ArgumentValue> arguments, cuda::Stream stream,
              AfterCapture after = AfterCapture::SameBuffers) const;

  /// The buffers whose tensor maps the last captured launch holds, once for each map; empty if none was
  /// captured.
  std::vector<CapturedBuffer> captured() const;

 private:
  friend class BoundKernel;
  std::shared_ptr<const BoundKernel::Shared> shared_;
  std::shared_ptr<const BoundKernel::Numbers> numbers_;
  std::shared_ptr<BoundKernel::Kept> kept_;  // null: the kernel has no tensor maps
};

}  // namespace cubind
