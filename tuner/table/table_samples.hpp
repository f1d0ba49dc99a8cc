#pragma once

#include <vector>

#include "plan/facts/facts.hpp"

namespace cubind {

/// The samples of all blocks in their order, in microseconds.
inline std::vector<double> samples_of(const std::vector<SampleBlock>& blocks) {
  std::vector<double> samples;
  for (const SampleBlock& block : blocks) {
    samples.insert(samples.end(), block.samples_us().begin(), block.samples_us().end());
  }
  return samples;
}

}  // namespace cubind
