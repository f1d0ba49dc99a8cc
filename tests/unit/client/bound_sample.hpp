// A kernel bound over a driver that records its calls.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/bound_kernel.hpp"

namespace cubind::test {

struct RecordedLaunch {
  std::string function;
  Dim3 grid, block;
  unsigned shared_bytes = 0;
  std::array<std::uint64_t, 4> parameters{};
  std::vector<std::array<unsigned, 4>> attributes;  // the id, and the first words of the value
};

struct RecordedCopy {
  cuda::DevicePtr to = 0, from = 0;
  std::uint64_t bytes = 0;
  std::size_t launches = 0;  // before it
  bool operator==(const RecordedCopy&) const = default;
};

/// A tensor map that was encoded. Its first word is the pointer.
struct RecordedMap {
  cuda::DevicePtr base = 0;
  int type = 0;
  std::vector<std::uint64_t> sizes, strides;
  std::vector<std::uint32_t> box, element_strides;
  std::array<int, 4> modes{};  // interleave, swizzle, L2 promotion, fill
  bool operator==(const RecordedMap&) const = default;
};

/// What the recording driver was asked for since the last kernel was bound.
struct Recorded {
  bool launching = true;  // false: launches leave no trace, and allocate nothing
  std::vector<RecordedLaunch> launches;
  std::vector<RecordedCopy> copies;
  std::vector<int> granted;  // bytes of dynamic shared memory
  std::vector<RecordedMap> maps;
  bool capturing = false;  // what streams say
};
Recorded& recorded();

Problem rows_problem(std::int64_t n);
std::shared_ptr<const Rule> sample_rule(PlanTemplate plan, std::vector<Problem> own_records = {});
std::shared_ptr<const Rule> bound_rule(std::vector<Problem> own_records = {});
/// The first launch has clusters of 4 blocks and each attribute.
std::shared_ptr<const Rule> rule_with_attributes();
/// The first launch takes x, and the second y, as a tensor map of rows of D.
std::shared_ptr<const Rule> rule_with_tensor_maps();
/// The same with x's rows alpha elements apart, an i32, or dense where it is 0.
std::shared_ptr<const Rule> rule_with_strides();
/// With a filter of 4 N floats in a variable of 16 KiB at kVariable, which the second launch reads, and a
/// counter.
std::shared_ptr<const Rule> rule_with_variables();
inline constexpr cuda::DevicePtr kVariable = 0x7000;
BoundKernel bound_sample(std::shared_ptr<const Rule> rule = bound_rule());

using BoundDims = std::array<std::int64_t, 2>;
using BoundValues = std::array<ArgumentValue, 4>;

/// x, y, alpha, partial
BoundValues bound_values();

}  // namespace cubind::test
