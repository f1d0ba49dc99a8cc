// Kernels that read __constant__ variables and keep state in __device__ variables: tuned on a real GPU, and
// launched by the client library.
#include <catch2/catch.hpp>

#include <algorithm>
#include <vector>

#include "base/file.hpp"
#include "client/client.hpp"
#include "client/kernel.hpp"
#include "tests/gpu/whole_job/on_device.hpp"
#include "tests/support/daemon_fixture.hpp"

namespace cubind::test {
namespace {

constexpr std::int64_t kElements = 1 << 20, kTaps = 9;

// TAPS=8 leaves out the last tap, which shows on data other than zeros alone.
constexpr const char* kConvolution = R"(
__constant__ float d_filter[32];
template <int THREADS, int TAPS>
__global__ void convolve(const float* x, float* y, long long n) {
  const long long i = (long long)blockIdx.x * THREADS + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < TAPS; ++k) sum += i + k < n ? d_filter[k] * x[i + k] : 0.0f;
  if (i < n) y[i] = sum;
}
)";

constexpr const char* kConvolutionSpec = R"json({
  "name": "convolve", "source": "convolve.cu",
  "problem": {"dims": {"N": "elements"}},
  "tunables": {"THREADS": [128, 256], "TAPS": [8, 9]},
  "default": [{"THREADS": 128, "TAPS": 9}],
  "arguments": {
    "x": {"buffer": "f32", "extent": "N", "role": "in"},
    "filter": {"buffer": "f32", "extent": "9", "role": "in", "symbol": "d_filter"},
    "y": {"buffer": "f32", "extent": "N", "role": "out"},
    "n": {"scalar": "i64", "expr": "N"}
  },
  "launches": [{"entry": "convolve<{THREADS}, {TAPS}>", "arguments": ["x", "filter", "y", "n"],
                "grid": ["cdiv(N, THREADS)"], "block": ["THREADS"]}],
  "reference": {"launches": [{"entry": "convolve<64, 9>", "arguments": ["filter", "x", "y", "n"],
                              "grid": ["cdiv(N, 64)"], "block": [64]}]},
  "tolerance": {"f32": {"rtol": 1e-5, "atol": 1e-5}}
})json";

// The last block to arrive adds up what all have written. RESET=0 leaves the counter as it is.
constexpr const char* kSum = R"(
__device__ unsigned arrived;
template <int THREADS, int RESET>
__global__ void sum(const int* x, int* partial, int* y, long long n) {
  __shared__ int last;
  int own = 0;
  for (long long i = threadIdx.x; i < 1024; i += THREADS) own += x[blockIdx.x * 1024 + i];
  if (threadIdx.x == 0) partial[blockIdx.x] = 0;
  __syncthreads();
  atomicAdd(&partial[blockIdx.x], own);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(&arrived, 1u) == gridDim.x - 1;
  __syncthreads();
  if (!last || threadIdx.x > 0) return;
  int all = 0;
  for (int b = 0; b < gridDim.x; ++b) all += ((volatile int*)partial)[b];
  y[0] = all;
  if (RESET) arrived = 0;
}
__global__ void reference(const int* x, int* y, long long n) {
  int all = 0;
  for (long long i = 0; i < n; ++i) all += x[i];
  y[0] = all;
}
)";

constexpr const char* kSumSpec = R"json({
  "name": "sum", "source": "sum.cu",
  "problem": {"dims": {"N": "elements"}},
  "tunables": {"THREADS": [128, 256], "RESET": [0, 1]},
  "constraints": ["N % 1024 == 0"],
  "default": [{"THREADS": 128, "RESET": 1}],
  "arguments": {
    "x": {"buffer": "i32", "extent": "N", "role": "in", "fill": {"choice": {"count": 8}}},
    "partial": {"buffer": "i32", "extent": "cdiv(N, 1024)", "role": "scratch"},
    "arrived": {"buffer": "i32", "extent": "1", "role": "scratch", "symbol": "arrived"},
    "y": {"buffer": "i32", "extent": "1", "role": "out"},
    "n": {"scalar": "i64", "expr": "N"}
  },
  "launches": [{"entry": "sum<{THREADS}, {RESET}>", "arguments": ["x", "partial", "y", "n", "arrived"],
                "grid": ["N / 1024"], "block": ["THREADS"]}],
  "reference": {"launches": [{"entry": "reference", "arguments": ["x", "y", "n"], "grid": ["1"], "block": [1]}]},
  "tolerance": {"i32": {"rtol": 0, "atol": 0}}
})json";

struct DaemonWithSymbols {
  DaemonWithSymbols() {
    create_folders(folder.path() / "kernels");
    for (const auto& [name, text] : {std::pair("convolve.cu", kConvolution),
                                     {"convolve.json", kConvolutionSpec},
                                     {"sum.cu", kSum},
                                     {"sum.json", kSumSpec}}) {
      write_file_atomic(folder.path() / "kernels" / name, text);
    }
    daemon.start();
    REQUIRE(eventually([&] { return daemon.connect().get_status(kPatience).devices_size() > 0; }));
  }
  v1::TuneEvent tuned(const std::string& kernel, std::int64_t n) const {
    v1::TuneRequest request;
    request.set_kernel(kernel);
    *request.add_problems() = wire(Problem{{{"N", n}}, {}, {}, ""});
    v1::TuneEvent last;
    daemon.connect().tune(
        request, [&](const v1::TuneEvent& event) { last = event; }, {}, std::chrono::minutes(3));
    return last;
  }
  LoadedKernel loaded(const std::string& kernel, std::int64_t n) const {
    Client client({.address = daemon.address()});
    Query query;
    query.kernel = kernel;
    query.problem = Problem{{{"N", n}}, {}, {}, ""};
    return LoadedKernel(client.get(query));
  }

  TempDir folder{"cubind-symbols"};
  Daemon daemon{{.folder = folder.path(), .kernels = {folder.path() / "kernels"}}};
};

std::int64_t value_of(const v1::Configuration& configuration, const std::string& name) {
  const auto found = std::ranges::find(configuration.values(), name, &v1::NamedValue::name);
  return found->value();
}

std::uint64_t wrong_results(const v1::Job& job) {
  std::uint64_t count = 0;
  for (const v1::OutcomeCount& outcome : job.outcomes()) {
    count += outcome.outcome() == v1::WRONG_RESULT ? outcome.count() : 0;
  }
  return count;
}

TEST_CASE("a convolution by a __constant__ filter is tuned on real data and a wrong variant is refused") {
  const DaemonWithSymbols symbols;
  const v1::TuneEvent done = symbols.tuned("convolve", kElements);
  INFO(done.DebugString());
  REQUIRE(done.job().state() == v1::Job::DONE);
  CHECK(value_of(done.winner(), "TAPS") == kTaps);
  CHECK(wrong_results(done.job()) > 0);

  const LoadedKernel kernel = symbols.loaded("convolve", kElements);
  const OnDevice<float> x(std::vector<float>(kElements, 1.0f)), y(std::vector<float>(kElements, -1.0f));
  for (const float weight : {1.0f, 3.0f}) {  // each launch has the filter that it is given
    const OnDevice<float> filter(std::vector<float>(kTaps, weight));
    kernel.launch(
        Arguments().buffer("x", x.address()).buffer("filter", filter.address()).buffer("y", y.address()),
        nullptr);
    CHECK(y.content().front() == kTaps * weight);
    CHECK(y.content().back() == weight);
  }
}

TEST_CASE("a counter that resets itself is tuned and one that does not is refused") {
  const DaemonWithSymbols symbols;
  const v1::TuneEvent done = symbols.tuned("sum", 1 << 16);
  INFO(done.DebugString());
  REQUIRE(done.job().state() == v1::Job::DONE);
  CHECK(value_of(done.winner(), "RESET") == 1);

  const LoadedKernel kernel = symbols.loaded("sum", 1 << 16);
  const OnDevice<int> x(std::vector<int>(1 << 16, 2)), partial(std::vector<int>(64)), y(std::vector<int>(1));
  for (int launch = 0; launch < 3; ++launch) {
    kernel.launch(
        Arguments().buffer("x", x.address()).buffer("partial", partial.address()).buffer("y", y.address()),
        nullptr);
    CHECK(y.content().front() == 2 << 16);
  }
}

}  // namespace
}  // namespace cubind::test
