// LoadedKernel on a GPU. The module is PTX, which the driver takes instead of a cubin, so that no
// compiler is needed.
#include "client/kernel.hpp"

#include <catch2/catch.hpp>
#include <thread>

#include "base/error.hpp"
#include "client/gpu.hpp"
#include "cuda_api/driver_api.hpp"
#include "plan/wire.hpp"
#include "schemas/cubind.pb.h"
#include "tests/support/refusal_of.hpp"

namespace cubind {
namespace {

// y[i] = alpha * x[i] for i < n, by way of the last kilobyte of 60 KiB of dynamic shared memory.
constexpr const char* kPtx = R"(
.version 7.0
.target sm_75
.address_size 64
.extern .shared .align 16 .b8 memory[];
.visible .entry scale(.param .u64 x, .param .u64 y, .param .u64 n, .param .f32 alpha)
{
  .reg .pred %p;
  .reg .b32 %r<8>;
  .reg .b64 %rd<8>;
  .reg .f32 %f<5>;
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  ld.param.u64 %rd3, [n];
  ld.param.f32 %f1, [alpha];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.s32 %r4, %r1, %r2, %r3;
  cvt.u64.u32 %rd4, %r4;
  setp.ge.u64 %p, %rd4, %rd3;
  @%p bra DONE;
  shl.b64 %rd5, %rd4, 2;
  add.u64 %rd6, %rd1, %rd5;
  ld.global.f32 %f2, [%rd6];
  mul.f32 %f3, %f2, %f1;
  mov.u32 %r5, memory;
  shl.b32 %r6, %r3, 2;
  add.u32 %r7, %r5, %r6;
  st.shared.f32 [%r7+60416], %f3;
  ld.shared.f32 %f4, [%r7+60416];
  add.u64 %rd7, %rd2, %rd5;
  st.global.f32 [%rd7], %f4;
DONE:
  ret;
}
)";

constexpr std::int64_t kMax = 1024;

Problem problem(std::int64_t n) { return {{{"N", n}}, {{"T", DType::F32}}, {}, ""}; }

PlanTemplate scale_template() {
  LaunchTemplate launch;
  launch.entry = "scale";
  launch.entry_symbol = "scale";
  launch.grid = {"cdiv(N, 256)"};
  launch.block = {"256"};
  launch.shared_bytes = "61440";
  launch.parameters = {{"x", ParameterSource::Buffer, DType::F32, Role::In, "N", 16, ""},
                       {"y", ParameterSource::Buffer, DType::F32, Role::Out, "N", 16, ""},
                       {"N", ParameterSource::Value, DType::I64, Role::None, "", 0, "N"},
                       {"alpha", ParameterSource::Caller, DType::F32, Role::None, "", 0, ""}};
  PlanTemplate plan;
  plan.launches = {launch};
  return plan;
}

Answer scale_answer(const std::string& module = kPtx) {
  const DeviceConstants device{1, 101376, 0, 75};
  auto reply = std::make_shared<v1::GetVariantReply>();
  reply->set_kernel("scale");
  to_wire(problem(kMax), *reply->mutable_problem());
  to_wire(scale_template(), device, *reply->mutable_rule());
  v1::Interval& interval = *reply->mutable_rule()->add_intervals();
  interval.set_dim("N");
  interval.set_lower(0);
  interval.set_upper(kMax);
  reply->mutable_artifact()->set_digest(std::string(Digest::of(module).view()));
  return Answer(std::move(reply), std::make_shared<const std::string>(module));
}

// The kernel with x = 0, 1, 2, ... and y = 0 on the device, in the primary context.
struct Fixture {
  LoadedKernel kernel{scale_answer()};
  std::shared_ptr<const cuda::DriverApi> api = cuda::load_driver();
  cuda::DevicePtr x = 0, y = 0;

  Fixture() {
    cuda::check(*api, api->mem_alloc(&x, kMax * 4), "x");
    cuda::check(*api, api->mem_alloc(&y, kMax * 4 + 16), "y");
    std::vector<float> values(kMax);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(i);
    }
    cuda::check(*api, api->memcpy_htod(x, values.data(), kMax * 4), "upload");
    cuda::check(*api, api->memcpy_htod(y, std::vector<float>(kMax).data(), kMax * 4), "clear");
  }
  ~Fixture() {
    api->mem_free(x);
    api->mem_free(y);
  }
  Arguments arguments() const { return Arguments().buffer("x", x).buffer("y", y).scalar("alpha", 0.5); }
  std::vector<float> result() const {
    std::vector<float> values(kMax);
    cuda::check(*api, api->ctx_synchronize(), "running");
    cuda::check(*api, api->memcpy_dtoh(values.data(), y, kMax * 4), "download");
    return values;
  }
};

}  // namespace

TEST_CASE_METHOD(Fixture, "a loaded kernel runs its plan with more than 48 KB of dynamic shared memory") {
  kernel.launch(arguments(), nullptr);
  const std::vector<float> values = result();
  CHECK(values[1] == 0.5f);
  CHECK(values[1023] == 511.5f);
}

TEST_CASE_METHOD(Fixture, "another problem of the bucket runs with the same cubin and its own plan") {
  kernel.launch(problem(700), arguments(), nullptr);
  const std::vector<float> values = result();
  CHECK(values[699] == 349.5f);
  CHECK(values[700] == 0.0f);
  CHECK_THROWS_AS(kernel.launch(problem(kMax + 1), arguments(), nullptr), Error);
}

TEST_CASE_METHOD(Fixture,
                 "a problem that leaves every launch out takes the same arguments and launches nothing") {
  kernel.launch(problem(0), arguments(), nullptr);
  CHECK(result()[1] == 0.0f);
}

TEST_CASE_METHOD(Fixture, "a thread without a context may launch") {
  std::thread([&] { kernel.launch(arguments(), nullptr); }).join();
  CHECK(result()[2] == 1.0f);
}

TEST_CASE_METHOD(Fixture, "a refused pointer leaves the context usable") {
  CHECK_THROWS_WITH(kernel.launch(arguments().buffer("y", y + 4), nullptr),
                    Catch::Contains("aligned to 4 bytes"));
  kernel.launch(arguments(), nullptr);
  CHECK(result()[2] == 1.0f);
}

TEST_CASE("a module that the driver does not load is refused with its words") {
  const Error error = test::error_of([&] { LoadedKernel kernel(scale_answer("no cubin")); }).value();
  CHECK(error.code() == ErrorCode::FailedPrecondition);
  CHECK_THAT(error.what(), Catch::Contains("loading the cubin of scale"));
}

TEST_CASE("the current GPU is described to the daemon") {
  const Gpu gpu = current_gpu();
  CHECK(gpu.facts.sm_count > 0);
  CHECK(gpu.facts.pci_device_id != 0);
  CHECK(gpu.driver.cuda >= 12000);
}

}  // namespace cubind
