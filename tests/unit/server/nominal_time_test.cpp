#include <catch2/catch.hpp>

#include "server/jobs/nominal_time.hpp"
#include "tests/support/paths.hpp"

namespace cubind::test {
namespace {

double seconds_of(const KernelSpec& spec, const std::string& problem) {
  return nominal_seconds(spec, spec.canonicalize(parse_problem(problem), "problem"));
}

TEST_CASE("what moves more bytes or computes more is more work") {
  const auto add = load_kernel_spec((source_dir() / "variants/vector_add/vector_add.json").string());
  CHECK(seconds_of(*add, "N=2000000,T=f32") > seconds_of(*add, "N=1000000,T=f32"));
  CHECK(seconds_of(*add, "N=1000000,T=f32") > seconds_of(*add, "N=1000000,T=f16"));
  const auto matmul = load_kernel_spec((source_dir() / "variants/matmul/matmul.json").string());
  // As many bytes, and 1.8 times as many operations.
  CHECK(seconds_of(*matmul, "M=8192,K=8192,N=8192,T=bf16") >
        1.5 * seconds_of(*matmul, "M=8192,K=2048,N=18022,T=bf16"));
}

TEST_CASE("what says nothing of its work or does so by a wrong expression counts as none") {
  auto spec = *load_kernel_spec((source_dir() / "variants/vector_add/vector_add.json").string());
  spec.work = {"N / (N - 1000)", "", ""};
  CHECK(seconds_of(spec, "N=1000,T=f32") == 0);
  spec.work = {};
  CHECK(seconds_of(spec, "N=1000,T=f32") == 0);
}

TEST_CASE("a job of a short kernel is longer than that of one with eight times the work") {
  const auto rmsnorm = load_kernel_spec((source_dir() / "variants/rmsnorm/rmsnorm_forward.json").string());
  const auto job = [&](const std::string& problem) {
    return nominal_job_seconds(*rmsnorm, rmsnorm->canonicalize(parse_problem(problem), "problem"));
  };
  CHECK(job("N=65536,D=8192,T=bf16") > job("N=1024,D=4096,T=bf16"));
  CHECK(job("N=1024,D=4096,T=bf16") > job("N=8192,D=4096,T=bf16"));
  CHECK(job("N=1024,D=4096,T=bf16") > job("N=512,D=4096,T=bf16"));
  CHECK(job("N=8192,D=4096,T=bf16") > job("N=4096,D=4096,T=bf16"));
}

}  // namespace
}  // namespace cubind::test
