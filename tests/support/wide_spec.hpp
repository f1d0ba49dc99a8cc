// Kernel specs with more combinations than can be listed.
#pragma once

#include <string>

#include "base/json.hpp"

namespace cubind::test {

/// Twenty more tunables of four values, 1.1 * 10^12 combinations, and forty constraints. Each ties three
/// tunables: near ones, or, where `tangled`, any.
inline void widen(OrderedJson& spec, bool tangled) {
  const auto name = [](int i) { return "P" + std::to_string(i % 20); };
  const auto tie = [&](int a, int b, int c, int most) {
    spec["constraints"].push_back(name(a) + " * " + name(b) + " * " + name(c) +
                                  " <= " + std::to_string(most));
  };
  for (int i = 0; i < 20; ++i) {
    spec["tunables"][name(i)] = {1, 2, 4, 8};
    spec["defines"].push_back(name(i) + "={" + name(i) + "}");
    for (OrderedJson& configuration : spec["default"]) {
      configuration[name(i)] = 1;
    }
  }
  for (int i = 0; i < 40; ++i) {
    tangled ? tie(i * 7, i * i + 3, i * 11 + 5, 256) : tie(i, i + 1, i < 20 ? i + 2 : i + 3, 128);
  }
}

}  // namespace cubind::test
