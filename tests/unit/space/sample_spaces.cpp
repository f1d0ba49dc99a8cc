#include "tests/unit/space/sample_spaces.hpp"

#include <algorithm>
#include <array>

namespace cubind::test {
namespace {

std::string random_constraint(Random& random, const std::vector<Axis>& axes) {
  const auto name = [&] { return axes[random.below(axes.size())].name; };
  const std::array<std::string, 8> forms = {
      name() + " * " + name() + " <= 24",
      name() + " % " + name() + " == 0",
      name() + " + " + name() + " - " + name() + " > 1",
      "max(" + name() + ", " + name() + ") != min(" + name() + ", 4)",
      name() + " == 1 || " + name() + " / " + name() + " >= 1",
      "cdiv(" + name() + ", " + name() + ") < 4 && " + name() + " >= 2",
      name() + " > 2 ? " + name() + " < 8 : " + name() + " != 3",
      "!(" + name() + " == " + name() + ") || " + name() + " == 4",
  };
  return forms[random.below(forms.size())];
}

}  // namespace

std::vector<Check> SampleSpace::checks() const {
  std::vector<Check> result;
  for (const std::string& constraint : constraints) {
    result.push_back(expression_check(constraint, axes));
  }
  return result;
}

SampleSpace random_space(Random& random) {
  static constexpr std::array<std::int64_t, 7> kValues = {1, 2, 3, 4, 6, 8, 16};
  SampleSpace space;
  const std::uint64_t axes = 2 + random.below(5);
  for (std::uint64_t axis = 0; axis < axes; ++axis) {
    std::array<std::int64_t, 7> values = kValues;
    random.shuffle(std::span<std::int64_t>(values));
    space.axes.push_back(
        {"P" + std::to_string(axis), {values.begin(), values.begin() + 1 + std::ptrdiff_t(random.below(5))}});
  }
  for (std::uint64_t left = random.below(7); left > 0; --left) {
    space.constraints.push_back(random_constraint(random, space.axes));
  }
  return space;
}

SampleSpace large_space() {
  SampleSpace parts;
  const auto name = [](int i) { return "P" + std::to_string(i % 20); };
  for (int i = 0; i < 20; ++i) {
    parts.axes.push_back({name(i), {1, 2, 4, 8}});
    parts.constraints.push_back(name(i) + " * " + name(i + 1) + " * " + name(i + 3) + " <= 128");
    parts.constraints.push_back(name(i) + " % " + name(i + 2) + " == 0 || " + name(i) + " < 4");
  }
  return parts;
}

SampleSpace tangled_space() {
  SampleSpace parts = large_space();
  const auto name = [](int i) { return "P" + std::to_string(i % 20); };
  parts.constraints.clear();
  for (int i = 0; i < 40; ++i) {
    parts.constraints.push_back(name(i * 7) + " * " + name(i * i + 3) + " * " + name(i * 11 + 5) + " <= 256");
  }
  return parts;
}

std::vector<std::vector<std::int64_t>> brute_force(const std::vector<Axis>& axes,
                                                   const std::vector<Check>& checks) {
  std::vector<std::vector<std::int64_t>> all = {{}};
  for (const Axis& axis : axes) {
    std::vector<std::vector<std::int64_t>> longer;
    for (const std::vector<std::int64_t>& shorter : all) {
      for (const std::int64_t value : axis.values) {
        longer.push_back(shorter);
        longer.back().push_back(value);
      }
    }
    all = std::move(longer);
  }
  std::erase_if(all, [&](const auto& values) {
    return !std::all_of(checks.begin(), checks.end(),
                        [&](const Check& check) { return check.holds(values); });
  });
  return all;
}

}  // namespace cubind::test
