// Evaluates a kernel's launch expressions to the launch plan of one problem. Daemon, agent and client share
// this code: the daemon's reply has a PlanTemplate, and the client evaluates it for the other problems of the
// bucket.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plan/dtype.hpp"
#include "plan/problem.hpp"
#include "plan/tensor_map.hpp"

namespace cubind {

struct Dim3 {
  std::uint32_t x = 1;
  std::uint32_t y = 1;
  std::uint32_t z = 1;
  bool operator==(const Dim3&) const = default;
};

/// An argument's role for the caller and the tuner. None: a scalar.
enum class Role : std::uint8_t { None, In, Out, InOut, Zero, Scratch };

/// How a launch gets an argument.
enum class ParameterSource : std::uint8_t {
  Buffer,  // the caller's device memory, by its address
  Value,   // a number that the plan computes
  Caller,  // a number from the caller
  Symbol,  // the content of a variable, not a parameter of the kernel. Role In: the caller's device memory is
           // copied to it before the launch. Scratch: it keeps the kernels' writes
  TensorMap,  // the caller's device memory, which the kernel gets as a descriptor of 128 bytes
};

/// Whether an argument of this source has elements, an extent and a role.
constexpr bool is_buffer(ParameterSource source) {
  return source != ParameterSource::Value && source != ParameterSource::Caller;
}

/// One argument of a launch with its evaluated numbers.
struct Parameter {
  std::string name;  // source TensorMap: the buffer's
  ParameterSource source = ParameterSource::Buffer;
  DType type = DType::F32;
  Role role = Role::None;
  std::uint64_t extent_bytes = 0;        // buffers
  std::uint32_t align_bytes = 0;         // buffers: the pointer must be a multiple of it
  std::int64_t value = 0;                // source Value; converted to `type` at launch
  std::vector<std::int64_t> shape = {};  // buffers: the axes, outermost first; empty if the spec has none
  std::string variable = {};             // source Symbol: the name expression with every placeholder replaced
  std::string symbol = {};    // source Symbol: the lowered name in the cubin; empty before compiling
  TensorMap tensor_map = {};  // source TensorMap
  bool operator==(const Parameter&) const = default;
};

/// What a launch asks of the driver that depends on no number.
struct LaunchAttributes {
  bool cooperative = false;                        // all blocks run at a time and may wait for each other
  bool programmatic_stream_serialization = false;  // may begin before the launch before it has ended
  std::int32_t priority = 0;                       // 0: the stream's
  bool operator==(const LaunchAttributes&) const = default;
};

/// One kernel launch, complete except for the caller's addresses and scalars.
struct Launch {
  std::string entry;         // name expression with every placeholder replaced
  std::string entry_symbol;  // lowered name in the cubin; empty before compiling
  Dim3 grid;
  Dim3 block;
  std::uint64_t shared_bytes = 0;  // dynamic
  std::vector<Parameter> parameters;
  std::optional<Dim3> cluster = {};  // blocks; absent: none, or what the kernel is declared with
  LaunchAttributes attributes = {};
  bool operator==(const Launch&) const = default;
};

/// The launches in order; those with a zero in their grid are left out.
struct LaunchPlan {
  std::vector<Launch> launches;
  bool operator==(const LaunchPlan&) const = default;
};

struct ParameterTemplate {
  std::string name;
  ParameterSource source = ParameterSource::Buffer;
  DType type = DType::F32;
  Role role = Role::None;
  std::string extent;  // expression: elements
  std::uint32_t align_bytes = 0;
  std::string value;  // expression
  std::vector<std::string> shape =
      {};  // expressions: their product is the extent; empty: the spec gives none
  std::string variable = {}, symbol = {};  // as in Parameter
  TensorMapTemplate tensor_map = {};       // source TensorMap
  bool operator==(const ParameterTemplate&) const = default;
};

struct LaunchTemplate {
  std::string entry;
  std::string entry_symbol;
  std::vector<std::string> grid;   // one to three expressions
  std::vector<std::string> block;  // one to three expressions
  std::string shared_bytes = "0";
  std::vector<ParameterTemplate> parameters;
  std::vector<std::string> cluster = {};  // one to three expressions, or none
  LaunchAttributes attributes = {};
  bool operator==(const LaunchTemplate&) const = default;
};

/// The device constants that expressions may use: device.sm_count, device.shared_optin, device.l2_bytes,
/// device.cc (90 for 9.0).
struct DeviceConstants {
  std::int64_t sm_count = 0;
  std::int64_t shared_optin = 0;
  std::int64_t l2_bytes = 0;
  std::int64_t cc = 0;
  bool operator==(const DeviceConstants&) const = default;
};

inline constexpr std::pair<const char*, std::int64_t DeviceConstants::*> kDeviceConstants[] = {
    {"device.sm_count", &DeviceConstants::sm_count},
    {"device.shared_optin", &DeviceConstants::shared_optin},
    {"device.l2_bytes", &DeviceConstants::l2_bytes},
    {"device.cc", &DeviceConstants::cc},
};

/// Throws Error(InvalidArgument) at `field` if one is missing.
DeviceConstants device_constants_of(const std::vector<NamedValue>& values, std::string_view field);

/// A kernel's constraints and launches with bound types, before dims and tunables have values.
struct PlanTemplate {
  std::vector<std::string> constraints;
  std::vector<LaunchTemplate> launches;
  std::uint64_t static_shared_bytes = 0;  // largest of the entries; 0 before compiling
  std::string where;  // JSON pointer of the launches' owner, for messages: empty, or "/reference"
  bool operator==(const PlanTemplate&) const = default;
};

/// Either a plan, or the reason why this configuration is invalid for this problem on this device: a false
/// constraint or an exceeded launch limit (threads, grid, shared memory). The reason quotes the expression
/// and its values.
struct PlanResult {
  std::optional<LaunchPlan> plan;
  std::string violation;
};

/// Parses the expressions once and evaluates them for any problem: re-entrant, const, safe on many threads.
/// The constructor throws Error(InvalidArgument) if an expression does not parse, or uses a name that is
/// neither a dim, a tunable nor a device constant. evaluate() throws Error on overflow and division by zero,
/// quoting the expression and its values.
class PlanEvaluator {
 public:
  /// Takes the names of dims, flags and tunables, and their order, from `problem` and `configuration`.
  /// evaluate() needs problems and configurations with the same names in the same order.
  PlanEvaluator(PlanTemplate plan, const Problem& problem, const Configuration& configuration,
                const DeviceConstants& device);
  ~PlanEvaluator();
  PlanEvaluator(PlanEvaluator&&) noexcept;
  PlanEvaluator& operator=(PlanEvaluator&&) noexcept;

  PlanResult evaluate(const Problem& problem, const Configuration& configuration) const;

 private:
  struct Compiled;
  std::unique_ptr<Compiled> compiled_;
};

/// "caller.NAME": the name by which strides of tensor maps read a caller's scalar.
inline std::string caller_variable(const std::string& name) { return "caller." + name; }

/// The name expression that asks a compiler for the variable's symbol: "&filter<float>".
inline std::string variable_expression(const std::string& variable) { return "&" + variable; }
/// Whether a name expression belongs to a variable, not an entry.
inline bool is_variable(std::string_view expression) { return expression.starts_with('&'); }

/// The elements of a buffer of this shape; absent if an axis is negative or the count exceeds 2^63.
std::optional<std::int64_t> element_count(std::span<const std::int64_t> shape);

/// Limits of every GPU that cubind serves: 1024 threads per block, grid 2^31-1 x 65535 x 65535, block z at
/// most 64.
inline constexpr std::uint32_t kMaxThreadsPerBlock = 1024;
/// Blocks of a cluster that every GPU with clusters (compute capability 9.0 and later) runs.
inline constexpr std::uint32_t kMaxClusterBlocks = 8;

}  // namespace cubind
