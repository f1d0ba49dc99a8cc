// A kernel spec: the parsed JSON file, its sources, and what follows from them alone. Immutable after parsing; safe to share
// between threads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.hpp"
#include "tuner/plan/launch_plan.hpp"
#include "tuner/plan/problem.hpp"

namespace cubind {

struct SourceFile {
    std::string path;  // relative to the spec's folder, '/' separated, never absolute, never with ".."
    std::string content;
    bool operator==(const SourceFile&) const = default;
};

/// Everything an agent needs to work on a kernel: the spec's text and every file that its sources may include.
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
    /// The bucket of a value. Above the last edge, and for Exact: the value alone.
    Interval interval(std::int64_t value) const;
};

struct DimSpec {
    std::string name;
    std::string description;
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

struct Fill {
    enum class Kind : std::uint8_t { Normal, Uniform, Constant, Iota, Permutation, Choice, Offsets, File };
    Kind kind = Kind::Normal;
    std::vector<double> parameters;
    std::string file;
};

struct ArgumentSpec {
    std::string name;
    bool buffer = true;
    std::string type;    // a type name of the problem ("T") or a fixed type ("i64")
    std::string extent;  // buffers: expression, elements
    Role role = Role::None;
    std::uint32_t align_bytes = 16;
    Fill fill;
    bool timed_zero = false;
    std::string expr;          // scalars by expression
    bool from_caller = false;  // scalars from the caller
    double bench = 0;          // what the measurement passes for a caller's scalar
};

struct LaunchSpec {
    std::string entry;                   // with placeholders {T}, {THREADS}, {D}
    std::vector<std::string> arguments;  // names, in parameter order
    std::vector<std::string> grid, block;
    std::string shared_bytes = "0";
};

struct ReferenceSpec {
    enum class Kind : std::uint8_t { Kernel, Expected, Default };
    Kind kind = Kind::Default;
    std::string source;  // Kernel: file
    std::vector<LaunchSpec> launches;
    std::string expected;  // Expected: safetensors file
};

struct Tolerance {
    DType type = DType::F32;
    double rtol = 0;
    double atol = 0;
};

struct WorkSpec {
    std::string bytes, min_read_bytes, flops;  // expressions; empty: unknown
};

/// Parsed and checked. Every error of the factory functions is Error(InvalidArgument) whose where() is "file /json/pointer".
class KernelSpec {
  public:
    std::string name;
    std::string file;    // as the user names it
    std::string source;  // path of the CUDA source within the spec's folder
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
    std::vector<std::string> options;  // extra NVRTC options, checked against the allow-list
    std::vector<std::string> headers;  // folders
    bool arch_features = false;
    SpecBundle bundle;

    /// Puts dims, types and flags in declared order, fills flag defaults, checks names, ranges (1 to 2^48 unless the dim may be
    /// 0) and that each type is one of the listed choices. Throws Error(InvalidArgument) with `field` as the place.
    Problem canonicalize(const Problem& problem, std::string_view field) const;

    /// Checks that a configuration has each tunable once with a listed value; puts it in declared order.
    Configuration canonicalize(const Configuration& configuration, std::string_view field) const;

    /// The problem's bucket: the interval of each dim (a single value where it is exact).
    std::vector<BucketRule::Interval> bucket(const Problem& problem) const;
    /// The problem with every dim at its bucket's upper edge.
    Problem representative(const Problem& problem) const;

    /// Constraints and launches with the problem's types bound and placeholders of types, tunables and specialized dims
    /// replaced in the entries. Symbols are empty.
    PlanTemplate plan_template(const Problem& problem, const Configuration& configuration) const;
    PlanTemplate reference_template(const Problem& problem) const;

    /// Sum of |log2 ratio| over the dims; absent where types, flags or scenario differ.
    static std::optional<double> distance(const Problem& a, const Problem& b);

    const ArgumentSpec* argument(std::string_view name) const;
    std::optional<Tolerance> tolerance(DType type) const;
};

/// Parses the spec in `bundle`. The schema is compiled in.
std::shared_ptr<const KernelSpec> parse_kernel_spec(SpecBundle bundle);

/// Reads a spec file and every file under its folder (and `headers` folders) that its sources may include; then parses it.
std::shared_ptr<const KernelSpec> load_kernel_spec(const std::string& path);

}  // namespace cubind
