// Host time of launches in C++, as JSON in nanoseconds: cuLaunchKernel alone, a prepared launch, launches of
// sizes that were not seen before, and these from 1 to 16 threads. The kernel does nothing, so that the GPU
// is never waited for; without a GPU, a driver that does nothing may take the place of libcuda.so.1.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client/bound_kernel.hpp"
#include "cuda_api/driver_api.hpp"

namespace cubind {
namespace {

constexpr const char* kNothing = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .entry nothing(.param .u64 x, .param .u64 w, .param .u64 y, .param .u64 n, .param .f32 eps) { ret; }
)";
constexpr std::int64_t kSizes = 10'000;
constexpr int kCalls = 500;  // less than the driver's queue holds
constexpr int kRounds = 41;

// RMSNorm's constraints that depend on the rows are none; its grid is an expression like this one.
Rule make_rule() {
  const Problem problem{{{"N", kSizes}, {"D", 4096}}, {{"T", DType::Bf16}}, {}, ""};
  LaunchTemplate launch;
  launch.entry = launch.entry_symbol = "nothing";
  launch.grid = {
      "min(cdiv(N, MODE == 1 ? ROWS * UNROLL : ROWS), PERSISTENT == 0 ? N : device.sm_count * PERSISTENT)"};
  launch.block = {"THREADS", "ROWS"};
  launch.shared_bytes = "MODE == 2 ? ROWS * UNROLL * D * sizeof(T) : 0";
  const auto buffer = [](const char* name, Role role, const char* extent) {
    return ParameterTemplate{name, ParameterSource::Buffer, DType::Bf16, role, extent, 16, ""};
  };
  launch.parameters = {buffer("x", Role::In, "N*D"),
                       buffer("w", Role::In, "D"),
                       buffer("y", Role::Out, "N*D"),
                       {"N", ParameterSource::Value, DType::I64, Role::None, "", 0, "N"},
                       {"eps", ParameterSource::Caller, DType::F32, Role::None, "", 0, ""}};
  PlanTemplate plan;
  plan.constraints = {"D % 8 == 0", "THREADS * ROWS >= 64"};
  plan.launches = {launch};
  const Configuration configuration{
      {{"MODE", 1}, {"THREADS", 128}, {"ROWS", 2}, {"UNROLL", 1}, {"PERSISTENT", 0}}};
  return Rule({"rmsnorm", problem, configuration, {{"N", 0, kSizes}}, {}, plan, {132, 232448, 0, 90}});
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

// Nanoseconds a call, `calls` calls in each round.
double time_of(const cuda::DriverApi& api, int calls, const std::function<void(int)>& call) {
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    cuda::check(api, api.ctx_synchronize(), "cuCtxSynchronize");
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) {
      call(i);
    }
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    rounds.push_back(took.count() / calls);
  }
  return median(std::move(rounds));
}

// Nanoseconds a size on each of so many threads, all at once, without the launch itself.
double time_of_threads_once(const BoundKernel& kernel, int threads) {
  std::vector<std::thread> running;
  std::atomic<std::int64_t> covered = 0;
  const auto start = std::chrono::steady_clock::now();
  for (int thread = 0; thread < threads; ++thread) {
    running.emplace_back([&] {
      std::array<std::uint64_t, 4> extents{};
      std::int64_t mine = 0;
      for (std::int64_t n = 1; n <= kSizes; ++n) {
        mine += kernel.extents(std::array<std::int64_t, 2>{n, 4096}, extents) ? 1 : 0;
      }
      covered += mine;
    });
  }
  for (std::thread& thread : running) {
    thread.join();
  }
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
  return covered == threads * kSizes ? took.count() / static_cast<double>(kSizes) : -1;
}

double time_of_threads(const BoundKernel& kernel, int threads) {
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    rounds.push_back(time_of_threads_once(kernel, threads));
  }
  return median(std::move(rounds));
}

void measure() {
  const auto api = cuda::load_driver();
  auto rule = std::make_shared<const Rule>(make_rule());
  auto module = std::make_shared<CubinModule>(api, kNothing, BoundKernel::symbols(*rule), "rmsnorm");
  const BoundKernel kernel(rule, module);
  const std::vector<ArgumentValue> arguments = {cuda::DevicePtr{0x1000}, cuda::DevicePtr{0x2000},
                                                cuda::DevicePtr{0x3000}, 1e-6};
  const auto prepared = kernel.prepare(std::array<std::int64_t, 2>{4096, 4096}).value();
  std::uint64_t words[4] = {0x1000, 0x2000, 0x3000, 4096};
  float eps = 1e-6f;
  void* parameters[] = {&words[0], &words[1], &words[2], &words[3], &eps};
  const double driver = time_of(*api, kCalls, [&](int) {
    api->launch_kernel(module->function(0), 2048, 1, 1, 128, 2, 1, 0, nullptr, parameters, nullptr);
  });
  const double again = time_of(*api, kCalls, [&](int) { prepared.launch(arguments, nullptr); });
  const double sizes = time_of(*api, kCalls, [&](int i) {
    kernel.launch(std::array<std::int64_t, 2>{1 + 17 * i, 4096}, arguments, nullptr);
  });
  std::printf("{\"cuLaunchKernel_ns\": %.0f, \"prepared_ns\": %.0f, \"distinct_sizes_ns\": %.0f", driver,
              again, sizes);
  for (const int threads : {1, 4, 16}) {
    std::printf(", \"sizes_on_%d_threads_ns\": %.0f", threads, time_of_threads(kernel, threads));
  }
  std::printf("}\n");
}

}  // namespace
}  // namespace cubind

int main() {
  try {
    cubind::measure();
    return 0;
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "launch_native: %s\n", fault.what());
    return 1;
  }
}
