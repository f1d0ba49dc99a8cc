#include "tests/support/tiny_kernel.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <stdexcept>

#include "base/file.hpp"
#include "base/random.hpp"
#include "tests/support/example_facts.hpp"
#include "tuner/measure/measure_settings.hpp"

namespace cubind::test {
namespace {

constexpr const char* kSpec = R"json({
  "name": "scale",
  "source": "scale.cu",
  "problem": {
    "dims": {"N": "elements", "K": "factor"},
    "types": {"T": ["f32"]},
    "bucket": {"N": "pow2"}
  },
  "specialize": ["K"],
  "tunables": {"THREADS": [32, 64, 128, 256], "VECTOR": [1, 2, 4]},
  "constraints": ["N >= VECTOR"],
  "default": [{"THREADS": 128, "VECTOR": 1}],
  "arguments": {
    "x": {"buffer": "T", "extent": "N", "role": "in", "fill": "normal"},
    "y": {"buffer": "T", "extent": "N", "role": "out"},
    "N": {"scalar": "i64", "expr": "N"}
  },
  "launches": [
    {
      "entry": "scale<{T}, {THREADS}, {VECTOR}, {K}>",
      "arguments": ["x", "y", "N"],
      "grid": ["cdiv(N, THREADS * VECTOR)"],
      "block": ["THREADS"]
    }
  ],
  "reference": "default",
  "tolerance": {"f32": {"rtol": 1e-6, "atol": 0}}
}
)json";

constexpr const char* kSource = R"(
template <typename T, int THREADS, int VECTOR, int K>
__global__ void __launch_bounds__(THREADS) scale(const T* x, T* y, long long N) {
  const long long first = (static_cast<long long>(blockIdx.x) * THREADS + threadIdx.x) * VECTOR;
#pragma unroll
  for (int i = 0; i < VECTOR; ++i) {
    if (first + i < N) y[first + i] = x[first + i] * T(K);
  }
}
)";

// Of the fastest: finalists up to the sixth, the next two go after three samples, the last four after one.
constexpr std::array<double, kTinyConfigurations> kSlower = {1,    1.004, 1.012, 1.018, 1.022, 1.026,
                                                             1.06, 1.08,  1.25,  1.4,   1.6,   2};
constexpr double kFastestUs = 20;
constexpr double kNoise = 0.006;  // half its width, of the time
constexpr double kFinalistsBelow = 1.1;
constexpr std::size_t kFinalSamples = MeasureSettings{}.max_samples;  // no finalist needs a sample twice

const Configuration kDefault{{{"THREADS", 128}, {"VECTOR", 1}}};

// True times by place in the canonical order.
std::array<double, kTinyConfigurations> true_times(const Problem& problem) {
  auto factors = kSlower;
  Random random(Digest::of("times of " + to_string(problem)));
  random.shuffle(std::span<double>(factors));
  for (double& factor : factors) {
    factor *= kFastestUs;
  }
  return factors;
}

SampleBlock block(Random& random, double time_us, std::size_t samples) {
  SampleBlock result;
  result.mutable_conditions()->set_sm_mhz(1980);
  for (std::size_t i = 0; i < samples; ++i) {
    result.add_samples_us(time_us * (1 + kNoise * (2 * random.uniform() - 1)));
  }
  return result;
}

}  // namespace

Problem tiny_problem(std::int64_t factor, std::int64_t n) {
  Problem problem;
  problem.dims = {{"N", n}, {"K", factor}};
  problem.types = {{"T", DType::F32}};
  return problem;
}

void write_tiny_kernel(const std::filesystem::path& folder, const std::string& source_note) {
  create_folders(folder);
  write_file_atomic(folder / "scale.cu", "// " + source_note + kSource);
  write_file_atomic(folder / "scale.json", kSpec);
}

std::vector<Configuration> tiny_configurations() {
  std::vector<Configuration> all;
  for (const std::int64_t threads : {32, 64, 128, 256}) {
    for (const std::int64_t vector : {1, 2, 4}) {
      all.push_back({{{"THREADS", threads}, {"VECTOR", vector}}});
    }
  }
  return all;
}

Table tiny_table(const std::vector<Problem>& problems) {
  Table table;
  const DeviceClass device = derive_device_class(example_facts(), "facts");
  table.devices.push_back({device.digest, device.label, device.facts});
  const std::vector<Configuration> configurations = tiny_configurations();
  for (const Problem& problem : problems) {
    const auto times = true_times(problem);
    for (std::size_t i = 0; i < configurations.size(); ++i) {
      const std::string name = to_string(problem) + " " + to_string(configurations[i]);
      TableTrial trial;
      trial.context.kernel = kTinyKernel;
      trial.context.problem = problem;
      trial.context.device_class = device.digest;
      trial.context.policy = "cold/3,stream";
      trial.context.configuration = configurations[i];
      trial.context.trial = Digest::of(name);
      trial.context.driver = "580.159.04";
      trial.context.architecture = "sm_90";
      trial.timer = "cupti";
      trial.tick_us = 0.032;
      Random random(trial.context.trial);
      trial.screening = {block(random, times[i], 3)};
      // The others never are finalists. A small table is read quickly by each worker that plays it.
      const bool competes = times[i] < kFastestUs * kFinalistsBelow || configurations[i] == kDefault;
      if (competes) {
        trial.finals = {block(random, times[i], kFinalSamples)};
      }
      table.trials.push_back(std::move(trial));
    }
  }
  return table;
}

Configuration fastest_tiny_configuration(const Problem& problem) {
  const auto times = true_times(problem);
  return tiny_configurations()[static_cast<std::size_t>(std::ranges::min_element(times) - times.begin())];
}

TableTrial& trial_of(Table& table, const Problem& problem, const Configuration& configuration) {
  const auto found = std::ranges::find_if(table.trials, [&](const TableTrial& trial) {
    return trial.context.problem == problem && trial.context.configuration == configuration;
  });
  if (found == table.trials.end()) {
    throw std::logic_error("no trial of " + to_string(configuration));
  }
  return *found;
}

}  // namespace cubind::test
