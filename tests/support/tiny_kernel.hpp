// A kernel whose configurations compile in milliseconds, and a table that a replay device plays for it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tuner/table/table.hpp"

namespace cubind::test {

inline constexpr char kTinyKernel[] = "scale";
inline constexpr std::size_t kTinyConfigurations = 12;

/// N=`n`,K=`factor`,T=f32. K is compiled in: each factor has artifacts of its own. N has buckets that end at
/// powers of two.
Problem tiny_problem(std::int64_t factor, std::int64_t n = 4096);

/// y = K * x, in FOLDER/scale.json and FOLDER/scale.cu. `source_note` is a comment in the source: another one
/// is another revision.
void write_tiny_kernel(const std::filesystem::path& folder, const std::string& source_note = "");

/// THREADS in {32, 64, 128, 256} times VECTOR in {1, 2, 4}, in canonical order; THREADS=128,VECTOR=1 is the
/// default.
std::vector<Configuration> tiny_configurations();

/// Trials of all configurations on an H200 that never was. Which one is fast depends on the problem; six are
/// within 3 % of the fastest, with a noise that takes the finalists several rounds.
Table tiny_table(const std::vector<Problem>& problems);

/// The configuration with the smallest true time: it or one within the tie margin of it wins.
Configuration fastest_tiny_configuration(const Problem& problem);

/// The trial of the table; fails the test where there is none.
TableTrial& trial_of(Table& table, const Problem& problem, const Configuration& configuration);

}  // namespace cubind::test
