// A small valid spec with its source, to be changed by a test before it is parsed.
#pragma once

#include <memory>
#include <string>

#include "base/json.hpp"
#include "tuner/spec/kernel_spec.hpp"

namespace cubind::test {

struct SpecBuilder {
  OrderedJson json;
  std::vector<SourceFile> files;

  /// "scale": y = x * alpha. Dims N (buckets of powers of two) and D, type T, tunables THREADS, VECTOR and
  /// BLOCKS, where BLOCKS is in the grid alone; kernel.cu includes helper.cuh.
  SpecBuilder();

  std::shared_ptr<const KernelSpec> parse() const;
  SourceFile& file(const std::string& path);
};

/// A problem of the built spec, canonical.
Problem problem_of(const KernelSpec& spec, const std::string& text = "N=100,D=64,T=f32");

/// Of an H200.
DeviceConstants h200();

}  // namespace cubind::test
