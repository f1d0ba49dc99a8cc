// How good the choices of repeated tunings are, by one long measurement of all of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tuner/measure/measure_settings.hpp"
#include "tuner/table/table.hpp"

namespace cubind::ctl {

/// What the same problem was tuned to, again and again.
struct RepeatedProblem {
  std::string kernel;
  Problem problem;
  std::string policy;
  std::string device;  // label
  std::vector<Configuration> choices;
};

/// A configuration of the long measurement.
struct JudgedConfiguration {
  Configuration configuration;
  double time_us = 0;
  double regret = 0;         // by how much more time it takes than the fastest, as a share
  std::uint32_t chosen = 0;  // so many times
};

/// How many choices are another one than the choice before.
std::uint32_t flips(const std::vector<Configuration>& choices);

/// The `most` fastest that were timed, by the median of their final or screening samples, after the
/// choices: each once.
std::vector<Configuration> to_measure(const RepeatedProblem& repeated, const Table& table, std::size_t most);

/// What was measured in `rounds` rounds, fastest first, by the rules of the tuner's own finals.
std::vector<JudgedConfiguration> judge(const RepeatedProblem& repeated, const Table& table,
                                       std::uint32_t rounds, const MeasureSettings& settings = {});

}  // namespace cubind::ctl
