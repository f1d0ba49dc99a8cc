// A kernel spec: the parsed JSON file, its sources, and everything that depends only on them. Immutable after
// parsing; safe to share between threads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/digest.hpp"
#include "plan/launch_plan.hpp"
#include "plan/problem.hpp"
#include "tuner/spec/source_folders.hpp"
#include "tuner/spec/triton_target.hpp"

namespace cubind {

struct IncludeSearch;  // tuner/includes/include_closure.hpp
struct NpyArray;       // tuner/spec/npy.hpp

struct SourceFile {
  /// Relative to the spec's folder, '/' separated, normalized, never absolute. ".." only at the front, and
  /// only into one of the spec's headers folders: "../common/vector_io.cuh".
  std::string path;
  std::string content;
  bool operator==(const SourceFile&) const = default;
};

/// Everything that an agent needs for a kernel: the spec's text and every file that its sources may include.
struct SpecBundle {
  std::string file;  // for messages
  std::string spec_json;
  std::vector<SourceFile> files;  // sorted by path
};

struct BucketRule {
  enum class Kind : std::uint8_t { Exact, Pow2, Edges };
  Kind kind = Kind::Exact;
  std::vector<std::int64_t> edges;  // ascending; each at most 4 times the one before it

  struct Interval {
    std::int64_t lower = 0;  // inclusive
    std::int64_t upper = 0;  // inclusive: the representative
    bool operator==(const Interval&) const = default;
  };
  /// The bucket of a value. For Exact, above the last edge, and at or below a quarter of the first edge, it
  /// has only the value.
  Interval interval(std::int64_t value) const;
};

struct DimSpec {
  std::string name;
  std::string description;
  std::int64_t minimum = 1;  // 0 if the spec allows an empty dim
  BucketRule bucket;
  bool specialized = false;  // compiled in
};

struct TypeSpec {
  std::string name;
  std::vector<DType> choices;
};

struct Tunable {
  std::string name;
  std::vector<std::int64_t> values;
};

/// The content of an input for measuring and verifying. The enumerators list `parameters` in order:
struct Fill {
  enum class Kind : std::uint8_t {
    Normal,       // mean, standard deviation (0, 1)
    Uniform,      // low, high (0, 1): in [low, high), of integer types the integers from low to high - 1
    Constant,     // the value
    Iota,         // start, step (0, 1): element i is start + i * step
    Permutation,  // none: 0 to elements - 1 in random order
    Choice,   // count, Zipf exponent s (0): k in [0, count) with probability proportional to 1 / (k + 1)^s
    Offsets,  // total, perhaps sigma: ascending values from 0 to total, the ends included; with a sigma the
              // lengths of the parts are lognormal, equal if it is 0
    File,     // none: the data of a .npy file, whatever the seed
  };
  Kind kind = Kind::Normal;
  std::vector<double> parameters;  // not the values of `expression` and `sigma`
  std::string expression;          // over dims and flags. Choice: the count; Offsets: the total; else empty
  std::string file = {};           // File: relative to the spec's folder
  Digest content = {};             // File: digest of the whole file, or of the bytes in memory
  bool in_memory = false;          // File: the data are in another process (tuner/spec/npy.hpp)
  std::string sigma = {};          // Offsets: of the sigma, over dims and flags, if the parts have one
  bool operator==(const Fill&) const = default;
};

/// "normal", "uniform", ...
std::string_view to_string(Fill::Kind kind);

struct TensorMapSpec {
  std::string buffer;
  TensorMapTemplate map;  // but for the type, which is that of the argument
};

struct ArgumentSpec {
  std::string name;
  bool buffer = true;
  std::string type;                // a type name of the problem ("T") or a fixed type ("i64")
  std::string extent;              // buffers: expression, elements
  std::vector<std::string> shape;  // buffers: expressions, outermost axis first; empty if the spec has none
  Role role = Role::None;
  std::string symbol;  // buffers: the variable with the content, with placeholders; empty for a parameter
  std::uint32_t align_bytes = 16;
  Fill fill;
  bool timed_zero = false;
  std::vector<std::int64_t> cleared_by;  // role zero: values of CONFIG; elsewhere it is an output. Empty: all
  bool constant_output = false;          // outputs: the values do not depend on the inputs
  bool partial = false;                  // role out: some elements may stay unwritten
  bool partial_sums = false;             // partial: elements are summands along an axis of the shape
  std::string expr;                      // scalars that an expression gives
  bool from_caller = false;              // scalars from the caller
  double bench = 0;                      // the value that the measurement passes for a caller's scalar
  std::optional<TensorMapSpec> tensor_map = {};  // neither a buffer nor a scalar
};

/// Whether the caller reads it after the launch. Outputs are compared with the reference.
bool is_output(const ArgumentSpec& argument);

struct LaunchSpec {
  std::string entry;                   // with placeholders {T}, {THREADS}, {D}
  std::vector<std::string> arguments;  // names, in parameter order
  std::vector<std::string> grid, block;
  std::string shared_bytes = "0";
  std::vector<std::string> cluster = {};  // empty: none, or what the kernel is declared with
  LaunchAttributes attributes = {};
};

struct ReferenceSpec {
  enum class Kind : std::uint8_t { Kernel, Default };
  Kind kind = Kind::Default;
  std::string source;  // Kernel: file
  std::vector<LaunchSpec> launches;
};

/// A number; or a factor times an expression of the problem, or times its square root.
struct BoundSpec {
  enum class Kind : std::uint8_t { Number, Times, SquareRoot };
  Kind kind = Kind::Number;
  double factor = 0;       // Number: the value
  std::string expression;  // over dims, flags and sizeof
};

struct Tolerance {
  DType type = DType::F32;
  BoundSpec rtol, atol;
  std::string output = {};  // empty: for each output without its own tolerance for this type
};

/// The bounds of one output at one problem: every element satisfies |out - ref| <= atol + rtol * |ref|.
struct ToleranceBounds {
  double rtol = 0;
  double atol = 0;
  bool operator==(const ToleranceBounds&) const = default;
};

struct WorkSpec {
  // Expressions over dims, flags and sizeof; empty: unknown.
  std::string bytes, min_read_bytes, flops;
};

/// The work of one problem; absent if the spec does not give it.
struct WorkSizes {
  std::optional<std::uint64_t> bytes, min_read_bytes, flops;
};

/// A source's part of the artifact key: its digest and the digests of its include closure, sorted by name.
struct SourceDigests {
  Digest source;
  std::vector<std::pair<std::string, Digest>> includes;
  bool operator==(const SourceDigests&) const = default;
};

/// The path of the text with this digest within the bundle.
inline std::string ttir_path(const Digest& ttir) { return ttir.hex() + ".ttir"; }

/// One way to compile a Triton kernel: a text of Triton's IR and the options for compiling it.
struct TritonVariant {
  Digest ttir;
  std::string options;  // JSON with sorted names and no spaces

  /// The path of the text within the bundle.
  std::string path() const { return ttir_path(ttir); }
  bool operator==(const TritonVariant&) const = default;
};

/// The code of a kernel in Triton's IR (TTIR): made by one version of Triton for one architecture. Value i of
/// CONFIG, the spec's only tunable, is variants.at(i).
struct TritonCode : TritonTarget {
  std::map<std::int64_t, TritonVariant> variants;
};

/// A parsed and checked spec. The factory functions throw only Error(InvalidArgument) whose where() is "file
/// /json/pointer".
class KernelSpec {
 public:
  std::string name;
  std::string file;    // the name that the user gave
  std::string source;  // path of the CUDA source within the spec's folder; empty for a Triton kernel
  std::optional<TritonCode> triton;
  std::vector<DimSpec> dims;
  std::vector<TypeSpec> types;
  std::vector<NamedValue> flags;  // with their defaults
  std::vector<Tunable> tunables;
  std::vector<std::string> constraints;
  std::vector<Configuration> defaults;  // tried in order
  std::vector<ArgumentSpec> arguments;
  std::vector<LaunchSpec> launches;
  ReferenceSpec reference;
  std::vector<Tolerance> tolerances;
  WorkSpec work;
  // Extra NVRTC options: canonical, sorted, checked against the allow-list with each value of their
  // placeholders.
  std::vector<std::string> options;
  std::vector<std::string> defines;  // NAME=VALUE with placeholders, as in an entry
  std::vector<std::string> headers;  // folders
  bool arch_features = false;
  SpecBundle bundle;
  SourceDigests source_digests;
  SourceDigests reference_digests;  // of the reference kernel, if there is one

  /// Puts dims, types and flags in declared order (`problem` may list flags among its dims) and adds the
  /// defaults of missing flags. Checks names, ranges (1 to 2^48 unless the dim may be 0) and that each type
  /// is one of the listed choices. Throws Error(InvalidArgument) with `field` as the place.
  Problem canonicalize(const Problem& problem, std::string_view field) const;

  /// Checks that a configuration has each tunable once with a listed value, and puts the tunables in declared
  /// order.
  Configuration canonicalize(const Configuration& configuration, std::string_view field) const;

  /// The problem's bucket: the interval of each dim (a single value for an exact dim).
  std::vector<BucketRule::Interval> bucket(const Problem& problem) const;
  /// The problem with every dim at its bucket's upper edge.
  Problem representative(const Problem& problem) const;

  /// Constraints and launches with the problem's types bound, and with placeholders of types, tunables and
  /// specialized dims replaced in the entries. Symbols are empty.
  PlanTemplate plan_template(const Problem& problem, const Configuration& configuration) const;
  PlanTemplate reference_template(const Problem& problem) const;

  /// The sum of |log2 ratio| over the dims; absent if types, flags or scenario differ.
  static std::optional<double> distance(const Problem& a, const Problem& b);

  const ArgumentSpec* argument(std::string_view name) const;
  /// The outputs with rows along a dim: those whose extent depends on the dim.
  std::vector<std::string> outputs_along(std::string_view dim) const;
  /// The output's tolerance for this type, else the type's; null if the spec has neither.
  const Tolerance* tolerance(std::string_view output, DType type) const;
  const SourceFile* bundled_file(std::string_view path) const;
  /// The element type of an argument for the problem's types.
  DType element_type(const ArgumentSpec& argument, const Problem& problem) const;
  TensorMapType element_type(const TensorMapTemplate& map, const Problem& problem) const;
  /// The sizes of a buffer's axes, outermost first. Throws as resolved_fill() does.
  std::vector<std::int64_t> shape(const ArgumentSpec& argument, const Problem& problem) const;
  /// The fill with its expressions evaluated: parameters are complete, in the order of Fill::Kind. Throws
  /// Error(InvalidArgument) at the spec's pointer if the evaluation fails or a count is below 1.
  Fill resolved_fill(const ArgumentSpec& argument, const Problem& problem) const;
  /// The array of a fill of kind File, valid as long as the spec. Throws Error(InvalidArgument) if its type
  /// or number of elements differs from the buffer's.
  NpyArray file_data(const ArgumentSpec& argument, const Problem& problem) const;
  /// The part of file_data()'s check that needs only the problem's types: throws if the type differs.
  void check_file_type(const ArgumentSpec& argument, const Problem& problem) const;
  /// Throws Error(InvalidArgument) at the spec's pointer if an expression fails or is negative.
  ToleranceBounds bounds(const ArgumentSpec& output, const Problem& problem) const;
  /// A Triton kernel with a single configuration is compiled and served but never measured.
  bool is_compiled_only() const { return triton && triton->variants.size() == 1; }
  /// The variant that a configuration of a Triton kernel names.
  const TritonVariant& triton_variant(const Configuration& configuration) const;
  /// Throws like bounds().
  WorkSizes work_sizes(const Problem& problem) const;
};

/// Parses the spec in `bundle`. The schema is compiled in.
std::shared_ptr<const KernelSpec> parse_kernel_spec(SpecBundle bundle);

/// Finds the includes of a spec's sources in its bundle, not in a toolkit. The spec must outlive the result.
IncludeSearch include_search(const KernelSpec& spec);

/// Called with the path of each file before it is looked up, even if the file does not exist.
using OnLook = std::function<void(const std::filesystem::path&)>;

/// Reads and parses a spec file with every file under its folder (and `headers` folders) that its sources may
/// include. The result depends on no other files: as long as the files passed to `on_look` stay unchanged (or
/// missing), another call gives the same result.
///
/// Only files within `folders` are read; others do not exist for it. Throws InvalidArgument if a `headers`
/// folder leads out of `folders`.
std::shared_ptr<const KernelSpec> load_kernel_spec(const std::string& path, const OnLook& on_look = {},
                                                   const SourceFolders& folders = {});

}  // namespace cubind
