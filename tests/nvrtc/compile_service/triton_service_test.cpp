#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>

#include "base/digest.hpp"
#include "base/error.hpp"
#include "tests/nvrtc/compile_service/triton_service.hpp"
#include "tests/support/process_tree.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/triton_kernel.hpp"
#include "tuner/spec/cubin_entries.hpp"

namespace cubind::test {
namespace {

constexpr const char* kAddOne = R"(
module {
  tt.func public @add_one(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) attributes {noinline = false} {
    %one = arith.constant dense<1.0> : tensor<256xf32>
    %lanes = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32>
    %limits = tt.splat %n : i32 -> tensor<256xi32>
    %valid = arith.cmpi slt, %lanes, %limits : tensor<256xi32>
    %all = tt.splat %x : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>>
    %at = tt.addptr %all, %lanes : tensor<256x!tt.ptr<f32>>, tensor<256xi32>
    %value = tt.load %at, %valid : tensor<256x!tt.ptr<f32>>
    %sum = arith.addf %value, %one : tensor<256xf32>
    tt.store %at, %sum, %valid : tensor<256x!tt.ptr<f32>>
    tt.return
  }
})";

TEST_CASE("a service compiles Triton's IR and tells how the kernel is launched") {
  if (!has_triton()) {
    return skip_test(kNoTriton);
  }
  TritonService triton;
  CHECK(triton.toolchain.name().starts_with("triton 3."));
  CHECK(triton.toolchain.assemblers_size() == triton.toolchain.architectures_size());
  const v1::CompileReply reply = triton.compile(triton.request(kAddOne));
  INFO(reply.log());
  REQUIRE(reply.outcome() == v1::CORRECT);
  CHECK(reply.entry_symbols(0) == "add_one");
  CHECK(reply.resources(0).registers() > 0);
  const CubinEntries entries = read_cubin_entries(reply.cubin());
  REQUIRE(entries.contains("add_one"));
  CHECK(entries.at("add_one").parameter_bytes == std::vector<std::uint32_t>{8, 4, 8, 8});
}

TEST_CASE("two workers of Triton give the same cubin") {
  if (!has_triton()) {
    return skip_test(kNoTriton);
  }
  TritonService one, other;
  CHECK(one.compile(one.request(kAddOne)).cubin() == other.compile(other.request(kAddOne)).cubin());
}

TEST_CASE("TTIR that does not parse and options that are not allowed are outcomes and the worker goes on") {
  if (!has_triton()) {
    return skip_test(kNoTriton);
  }
  TritonService triton;
  const auto worker = descendants(::getpid());
  const v1::CompileReply broken = triton.compile(triton.request("module { tt.func @k("));
  CHECK(broken.outcome() == v1::COMPILE);
  CHECK_FALSE(broken.log().empty());
  const v1::CompileReply option =
      triton.compile(triton.request(kAddOne, R"({"num_warps":4,"ir_override":"/etc/passwd"})"));
  CHECK(option.outcome() == v1::COMPILE);
  CHECK(option.log().find("ir_override") != std::string::npos);
  v1::CompileRequest other = triton.request(kAddOne);
  other.mutable_triton()->set_version("3.0.0");
  CHECK(triton.compile(other).log().find("3.0.0") != std::string::npos);
  CHECK(triton.compile(triton.request(kAddOne)).outcome() == v1::CORRECT);
  REQUIRE(worker.size() == 1);
  CHECK(is_running(worker.front()));
}

TEST_CASE("a Python without Triton is an error of the probe") {
  CompileService service(TritonService::options(std::chrono::hours(1), "/usr/bin/false"));
  CHECK_THROWS_AS(service.probe(), Error);
}

}  // namespace
}  // namespace cubind::test
