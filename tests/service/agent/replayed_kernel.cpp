#include "tests/service/agent/replayed_kernel.hpp"

#include <cmath>

#include "plan/wire.hpp"
#include "tests/support/example_facts.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind::test {
namespace {

constexpr char kSpec[] = R"json({
  "name": "scale", "source": "scale.cu",
  "problem": {"dims": {"N": "elements"}, "types": {"T": ["f32"]}},
  "tunables": {"A": [1, 2, 4, 8], "B": [1, 2, 3]},
  "constraints": [],
  "default": [{"A": 1, "B": 1}],
  "arguments": {
    "x": {"buffer": "T", "extent": "N", "role": "in", "fill": "normal"},
    "y": {"buffer": "T", "extent": "N", "role": "out"},
    "N": {"scalar": "i64", "expr": "N"}},
  "launches": [{"entry": "scale<{T}, {A}, {B}>", "arguments": ["x", "y", "N"],
                "grid": ["cdiv(N, 256 * A)"], "block": ["256"]}],
  "reference": {"source": "reference.cu",
    "launches": [{"entry": "reference<{T}>", "arguments": ["x", "y", "N"], "grid": ["cdiv(N, 256)"], "block": ["256"]}]},
  "tolerance": {"f32": {"rtol": 1e-5, "atol": 1e-6}}
})json";

constexpr char kSource[] = R"(
template <typename T, int A, int B>
__global__ void scale(const T* x, T* y, long long n) {
  for (int k = 0; k < A; ++k) {
    const long long i = (blockIdx.x * static_cast<long long>(A) + k) * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * T(B) / T(B);
  }
}
)";

constexpr char kReference[] = R"(
template <typename T>
__global__ void reference(const T* x, T* y, long long n) {
  const long long i = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  if (i < n) y[i] = x[i];
}
)";

Problem problem() { return parse_problem("N=4096,T=f32"); }

}  // namespace

std::string replayed_table() {
  std::vector<TableTrial> trials;
  for (const std::int64_t a : {1, 2, 4, 8}) {
    for (const std::int64_t b : {1, 2, 3}) {
      const double steps =
          std::abs(std::log2(static_cast<double>(a) / 4)) + std::abs(static_cast<double>(b - 2));
      trials.push_back(replayed_trial("scale", problem(), {{{"A", a}, {"B", b}}}, 10 * std::pow(1.3, steps)));
    }
  }
  return replayed_table(std::move(trials));
}

v1::LeaseGrant replayed_lease(const v1::OfferedDevice& device, const SpecBundle& bundle,
                              const Problem& problem) {
  v1::LeaseGrant lease;
  lease.set_lease_id("lease-1");
  lease.set_fence(7);
  lease.set_job_id("job-1");
  lease.set_kind(v1::Job::TUNE);
  to_wire(bundle, *lease.mutable_spec());
  to_wire(problem, *lease.mutable_problem());
  *lease.mutable_facts() = device.facts();
  const DeviceClass offered = derive_device_class(device.facts(), "facts");
  lease.set_device_class(std::string(offered.digest.view()));
  lease.set_gpu_uuid(device.uuid());
  lease.set_job_key(std::string(Digest::of("job").view()));
  lease.set_lease_ms(1500);
  return lease;
}

v1::LeaseGrant replayed_lease(const v1::OfferedDevice& device) {
  return replayed_lease(device, {"scale.json", kSpec, {{"reference.cu", kReference}, {"scale.cu", kSource}}},
                        problem());
}

}  // namespace cubind::test
