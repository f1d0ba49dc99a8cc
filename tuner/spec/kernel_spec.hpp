// A kernel spec: the parsed JSON file, its sources, and everything that follows from them alone. Immutable
// after parsing; safe to share between threads.
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
#include "tuner/plan/launch_plan.hpp"
#include "tuner/plan/problem.hpp"
#include "tuner/spec/source_folders.hpp"
#include "tuner/spec/triton_target.hpp"

namespace cubind {

struct IncludeSearch;  // tuner/includes/include_closure.hpp

struct SourceFile {
  /// Relative to the spec's folder, '/' separated, normalized, never absolute. ".." only at the front, and
  /// only into one of the spec's headers folders: "../common/vector_io.cuh".
  std::string path;
  std::string content;
  bool operator==(const SourceFile&) const = default;
};

/// Everything an agent needs to work on a kernel: the spec's text and every file that its sources may
/// include.
struct SpecBundle {
  std::string file;  // for messages
  std::string spec_json;
  std::vector<SourceFile> files;  // sorted by path
};

struct BucketRule {
  enum class Kind : std::uint8_t { Exact, Pow2, Edges };
  Kind kind = Kind::Exact;
  std::vector<std::int64_t> edges;  // ascending; neighbours at most a factor 4 apart

  struct Interval {
    std::int64_t lower = 0;  // inclusive
    std::int64_t upper = 0;  // inclusive: the representative
    bool operator==(const Interval&) const = default;
  };
  /// The bucket of a value. Above the last edge, at or below a quarter of the first one, and for Exact: the
  /// value alone.
  Interval interval(std::int64_t value) const;
};

struct DimSpec {
  std::string name;
  std::string description;
  std::int64_t minimum = 1;  // 0 where the spec allows an empty dim
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

/// The content of an input when it is measured and verified. `parameters`, in this order:
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
  std::vector<double> parameters;  // without the values of `expression` and `sigma`
  std::string expression;  // Choice: of the count, Offsets: of the total, over dims and flags; else empty
  std::string file = {};   // File: relative to the spec's folder
  Digest content = {};     // File: of all of it
  std::string sigma = {};  // Offsets: of the sigma, over dims and flags, if the parts have one
  bool operator==(const Fill&) const = default;
};

/// "normal", "uniform", ...
std::string_view to_string(Fill::Kind kind);

struct ArgumentSpec {
  std::string name;
  bool buffer = true;
  std::string type;                // a type name of the problem ("T") or a fixed type ("i64")
  std::string extent;              // buffers: expression, elements
  std::vector<std::string> shape;  // buffers: expressions, outermost axis first; empty: the spec gives none
  Role role = Role::None;
  std::string symbol;  // buffers: the variable that has the content, with placeholders; empty: a parameter
  std::uint32_t align_bytes = 16;
  Fill fill;
  bool timed_zero = false;
  std::vector<std::int64_t> cleared_by;  // role zero: values of CONFIG; elsewhere it is an output. Empty: all
  bool constant_output = false;          // outputs: the values do not depend on the inputs
  bool partial = false;                  // role out: some elements may be left alone
  std::string expr;                      // scalars by expression
  bool from_caller = false;              // scalars from the caller
  double bench = 0;                      // the measurement passes it for a caller's scalar
};

/// Whether the caller reads it after the launch: what is compared with the reference.
bool is_output(const ArgumentSpec& argument);

struct LaunchSpec {
  std::string entry;                   // with placeholders {T}, {THREADS}, {D}
  std::vector<std::string> arguments;  // names, in parameter order
  std::vector<std::string> grid, block;
  std::string shared_bytes = "0";
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
  std::string output = {};  // empty: of each output that has none of its own for this type
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
  std::string unfused_bytes;  // of the separate kernels that this one replaces
};

/// The work of one problem; absent if the spec does not give it.
struct WorkSizes {
  std::optional<std::uint64_t> bytes, min_read_bytes, flops, unfused_bytes;
};

/// The artifact key's part for a source: its digest and those of its own include closure, by name, sorted.
struct SourceDigests {
  Digest source;
  std::vector<std::pair<std::string, Digest>> includes;
  bool operator==(const SourceDigests&) const = default;
};

/// The path within the bundle of the text with this digest.
inline std::string ttir_path(const Digest& ttir) { return ttir.hex() + ".ttir"; }

/// One way to compile a Triton kernel: a text of Triton's IR, and the options of the compile behind it.
struct TritonVariant {
  Digest ttir;
  std::string options;  // JSON with sorted names and no spaces

  /// Of the text within the bundle.
  std::string path() const { return ttir_path(ttir); }
  bool operator==(const TritonVariant&) const = default;
};

/// The code of a kernel in Triton's IR (TTIR): made by one version of Triton for one architecture. Value i of
/// CONFIG, the spec's only tunable, is variants.at(i).
struct TritonCode : TritonTarget {
  std::map<std::int64_t, TritonVariant> variants;
};

/// Parsed and checked. Every error of the factory functions is Error(InvalidArgument) whose where() is "file
/// /json/pointer".
class KernelSpec {
 public:
  std::string name;
  std::string file;    // as the user names it
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
  // Extra NVRTC options: canonical, sorted, checked against the allow-list with each value that a placeholder
  // in them may have.
  std::vector<std::string> options;
  std::vector<std::string> defines;  // NAME=VALUE with placeholders, as in an entry
  std::vector<std::string> headers;  // folders
  bool arch_features = false;
  SpecBundle bundle;
  SourceDigests source_digests;
  SourceDigests reference_digests;  // of a reference kernel

  /// Puts dims, types and flags in declared order (a flag may stand among the dims), fills flag defaults,
  /// checks names, ranges (1 to 2^48 unless the dim may be 0) and that each type is one of the listed
  /// choices. Throws Error(InvalidArgument) with `field` as the place.
  Problem canonicalize(const Problem& problem, std::string_view field) const;

  /// Checks that a configuration has each tunable once with a listed value; puts it in declared order.
  Configuration canonicalize(const Configuration& configuration, std::string_view field) const;

  /// The problem's bucket: the interval of each dim (a single value where it is exact).
  std::vector<BucketRule::Interval> bucket(const Problem& problem) const;
  /// The problem with every dim at its bucket's upper edge.
  Problem representative(const Problem& problem) const;

  /// Constraints and launches with the problem's types bound and placeholders of types, tunables and
  /// specialized dims replaced in the entries. Symbols are empty.
  PlanTemplate plan_template(const Problem& problem, const Configuration& configuration) const;
  PlanTemplate reference_template(const Problem& problem) const;

  /// Sum of |log2 ratio| over the dims; absent where types, flags or scenario differ.
  static std::optional<double> distance(const Problem& a, const Problem& b);

  const ArgumentSpec* argument(std::string_view name) const;
  /// The outputs that have rows along a dim: those whose extent depends on it.
  std::vector<std::string> outputs_along(std::string_view dim) const;
  /// The output's own for this type, else that of the type; null where the spec has neither.
  const Tolerance* tolerance(std::string_view output, DType type) const;
  const SourceFile* bundled_file(std::string_view path) const;
  /// The element type of an argument for the problem's types.
  DType element_type(const ArgumentSpec& argument, const Problem& problem) const;
  /// The fill with its expression evaluated: parameters are complete, in the order that Fill::Kind gives.
  /// Throws Error(InvalidArgument) at the spec's pointer where the evaluation fails or a count is below 1.
  Fill resolved_fill(const ArgumentSpec& argument, const Problem& problem) const;
  /// The data of a fill of kind File. Throws Error(InvalidArgument) if they have another type or number of
  /// elements than the buffer. Valid as long as the spec.
  std::string_view file_data(const ArgumentSpec& argument, const Problem& problem) const;
  /// The part of it that needs no problem of the caller's: throws for another type.
  void check_file_type(const ArgumentSpec& argument, const Problem& problem) const;
  /// Throws Error(InvalidArgument) at the spec's pointer where an expression fails or is negative.
  ToleranceBounds bounds(const ArgumentSpec& output, const Problem& problem) const;
  /// A Triton kernel of one configuration: it is compiled and served, and nothing is measured.
  bool is_compiled_only() const { return triton && triton->variants.size() == 1; }
  /// The variant that a configuration of a Triton kernel names.
  const TritonVariant& triton_variant(const Configuration& configuration) const;
  /// Throws as bounds() does.
  WorkSizes work_sizes(const Problem& problem) const;
};

/// Parses the spec in `bundle`. The schema is compiled in.
std::shared_ptr<const KernelSpec> parse_kernel_spec(SpecBundle bundle);

/// Where the sources of a spec find their includes: in its bundle, in no toolkit. The spec must outlive it.
IncludeSearch include_search(const KernelSpec& spec);

/// Called with the path of a file before it is looked at, whether it is there or not.
using OnLook = std::function<void(const std::filesystem::path&)>;

/// Reads a spec file and every file under its folder (and `headers` folders) that its sources may include;
/// then parses it. Nothing else of the file system counts. While the files that were named to `on_look` stay
/// as they are, present or not, another call ends as this one does.
///
/// `folders` limits what is read. A file outside of them does not exist for it. Throws InvalidArgument for a
/// `headers` folder that leads out of them.
std::shared_ptr<const KernelSpec> load_kernel_spec(const std::string& path, const OnLook& on_look = {},
                                                   const SourceFolders& folders = {});

}  // namespace cubind
