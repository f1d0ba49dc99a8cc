#include "tests/unit/spec/spec_builder.hpp"

#include <algorithm>
#include <stdexcept>

#include "tests/support/example_facts.hpp"

namespace cubind::test {
namespace {

constexpr const char* kSpec = R"json({
  "name": "scale", "source": "kernel.cu",
  "problem": {"dims": {"N": "rows", "D": "columns"}, "types": {"T": ["f32", "bf16"]}, "bucket": {"N": "pow2"}},
  "tunables": {"THREADS": [64, 128, 256], "VECTOR": [1, 2, 4, 8], "BLOCKS": [1, 2]},
  "constraints": ["D % VECTOR == 0", "VECTOR * sizeof(T) <= 16"],
  "default": [{"THREADS": 256, "VECTOR": 4, "BLOCKS": 1}, {"THREADS": 256, "VECTOR": 1, "BLOCKS": 1}],
  "arguments": {
    "x": {"buffer": "T", "extent": "N*D", "role": "in", "fill": "normal"},
    "y": {"buffer": "T", "extent": "N*D", "role": "out"},
    "n": {"scalar": "i64", "expr": "N*D"},
    "alpha": {"scalar": "f32", "from": "caller", "bench": 2}
  },
  "launches": [{
    "entry": "scale<{T}, {THREADS}, {VECTOR}>", "arguments": ["x", "y", "n", "alpha"],
    "grid": ["min(cdiv(N*D, THREADS*VECTOR), device.sm_count * BLOCKS)"], "block": ["THREADS"]
  }],
  "reference": {
    "source": "reference.cu",
    "launches": [{"entry": "scale_reference<{T}>", "arguments": ["x", "y", "n", "alpha"], "grid": ["N"], "block": [256]}]
  },
  "tolerance": {"f32": {"rtol": 1e-6, "atol": 0}, "bf16": {"rtol": 1e-2, "atol": 0}},
  "work": {"bytes": "2*N*D*sizeof(T)", "min_read_bytes": "N*D*sizeof(T)", "flops": "N*D"}
})json";

}  // namespace

SpecBuilder::SpecBuilder() : json(parse_json_strict(kSpec, "scale.json")) {
  files.push_back({"kernel.cu", "#include \"helper.cuh\"\n// scale\n"});
  files.push_back({"helper.cuh", "// helper\n"});
  files.push_back({"reference.cu", "// reference\n"});
}

std::shared_ptr<const KernelSpec> SpecBuilder::parse() const {
  return parse_kernel_spec({"scale.json", json.dump(), files});
}

SourceFile& SpecBuilder::file(const std::string& path) {
  const auto found = std::ranges::find(files, path, &SourceFile::path);
  if (found == files.end()) {
    throw std::logic_error("no file " + path);
  }
  return *found;
}

Problem problem_of(const KernelSpec& spec, const std::string& text) {
  return spec.canonicalize(parse_problem(text), "problem");
}

DeviceConstants h200() { return device_constants(example_facts()); }

}  // namespace cubind::test
