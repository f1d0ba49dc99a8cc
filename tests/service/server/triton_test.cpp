// A Triton kernel from its definition to what is served.
#include <catch2/catch.hpp>
#include <future>

#include "server/defined_kernels.hpp"
#include "server/service/context.hpp"
#include "tests/service/server/daemon_fixture.hpp"
#include "tests/support/triton_spec.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;

v1::Hello with_triton(v1::Hello hello, const std::string& version = "3.6.0") {
  offer_triton(hello, version);
  return hello;
}

/// Has no NVRTC.
v1::Hello triton_alone(v1::Hello hello) {
  hello.clear_toolchains();
  return with_triton(std::move(hello));
}

std::vector<int> departures_of(const Got& got) {
  const auto& wire = got.reply.provenance().departures();
  return {wire.begin(), wire.end()};
}

/// A daemon, and questions and orders for the kernel "rows", which it does not know.
struct RowsCaller : DaemonFixture {
  RowsCaller() {
    request.set_kernel(spec->name);
    request.mutable_problem()->clear_types();
    request.set_tune(v1::NEVER);
  }
  void define_rows() { REQUIRE(define(spec->bundle).ok()); }
  /// The first configuration, compiled by an agent that has left.
  void compile_default() {
    FakeAgent agent(address(), with_triton(compiling_hello()));
    auto call = std::async(std::launch::async, [&] { return get(request); });
    REQUIRE(agent.compile(agent.wait_for_lease()));
    REQUIRE(call.get().status.ok());
  }
  v1::TuneRequest order() const {
    v1::TuneRequest tune;
    tune.set_kernel(spec->name);
    *tune.add_problems() = request.problem();
    *tune.mutable_device()->mutable_facts() = request.device().facts();
    return tune;
  }
  std::shared_ptr<const KernelSpec> spec = TritonSpec().parse();
  v1::GetVariantRequest request = vector_add(4096);
};

TEST_CASE_METHOD(RowsCaller,
                 "a Triton kernel is unknown until it is defined and then compiled as one waits") {
  AutoAgent agent(address(), with_triton(compiling_hello()));
  CHECK(get(request).status.error_code() == grpc::StatusCode::NOT_FOUND);
  define_rows();
  const Got got = get(request);
  REQUIRE(got.status.ok());
  CHECK(departures_of(got) == std::vector<int>{v1::DEFAULT_CONFIGURATION});
  CHECK(got.reply.artifact().toolchain() == "triton 3.6.0");
  REQUIRE(got.reply.configuration().values_size() == 1);
  CHECK(got.reply.configuration().values(0).value() == 0);
}

TEST_CASE_METHOD(RowsCaller, "a job ends with the reason once its definition has made room for others") {
  const bool was_leased = GENERATE(false, true);
  CAPTURE(was_leased);
  define_rows();
  v1::TuneRequest detached = order();
  detached.set_detach(true);
  tune(detached);
  const auto evict = [&] {
    context().defined.remove(spec->name);
    context().kernels.reload();
  };
  if (was_leased) {
    FakeAgent agent(address(), triton_alone(hello_with(h200_facts())));
    agent.wait_for_lease();
    evict();
  } else {
    REQUIRE(jobs().at(0).state() == v1::Job::NO_DEVICE);
    evict();
  }
  eventually([&] { return jobs().empty(); });
  const v1::Job ended = jobs(true).at(0);
  CHECK(ended.state() == v1::Job::FAILED);
  CHECK_THAT(ended.error(), Contains("made room for others"));
  define_rows();  // its caller asks again
  tune(detached);
  CHECK(jobs().size() == 1);
}

TEST_CASE_METHOD(RowsCaller, "an agent gets no job of a language that it does not compile") {
  AutoAgent cuda(address(), hello_with(h200_facts(), "cuda"));
  FakeAgent triton(address(), triton_alone(hello_with(h200_facts(), "triton")));
  define_rows();
  request.set_tune(v1::AUTO);
  request.set_on_miss(v1::WAIT);
  auto rows = std::async(std::launch::async, [&] { return get(request); });
  const v1::LeaseGrant lease = triton.wait_for_lease();
  CHECK_THAT(lease.spec().spec_json(), Contains(spec->name));
  REQUIRE(triton.tune(lease));
  const Got got = rows.get();
  REQUIRE(got.status.ok());
  CHECK(got.reply.provenance().evidence() == v1::MEASURED);
  CHECK(departures_of(got).empty());
  CHECK(cuda.tuned() + cuda.compiled() == 0);
  v1::GetVariantRequest sums = vector_add(4096);
  sums.set_on_miss(v1::WAIT);
  REQUIRE(get(sums).status.ok());
  CHECK(cuda.tuned() == 1);
  CHECK_FALSE(triton.try_lease(std::chrono::milliseconds(100)));
}

TEST_CASE_METHOD(RowsCaller, "where no agent has that Triton the answer names it and what to do") {
  define_rows();
  FakeAgent other(address(), with_triton(hello_with(h200_facts()), "3.5.1"));
  eventually([&] { return status().agents() == 1; });
  for (const auto on_miss : {v1::SERVE, v1::WAIT}) {
    request.set_on_miss(on_miss);
    const grpc::Status status = get(request).status;
    CHECK(status.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
    CHECK_THAT(status.error_message(), Contains("none has Triton 3.6.0 with ptxas 12.9 for sm_90") &&
                                           Contains("there is nvrtc 13.0, triton 3.5.1 with ptxas 12.9") &&
                                           Contains("pip install triton==3.6.0") &&
                                           Contains("--triton-python"));
  }
  AutoAgent right(address(), with_triton(compiling_hello("right")));
  eventually([&] { return get(request).status.ok(); });
}

TEST_CASE_METHOD(RowsCaller, "a job that waits for a Triton says so where it is listed and in every answer") {
  define_rows();
  compile_default();
  FakeAgent agent(address(), hello_with(h200_facts()));
  eventually([&] { return status().agents() == 1; });
  request.set_tune(v1::AUTO);
  const Got got = get(request);
  REQUIRE(got.status.ok());
  CHECK(got.reply.job_state() == "no_device");
  CHECK_THAT(got.reply.why(), Contains("no agent with such a GPU compiles it: none has Triton 3.6.0"));
  REQUIRE(jobs().size() == 1);
  CHECK(jobs().front().note() == "needs Triton 3.6.0 with ptxas 12.9 for sm_90");
}

TEST_CASE_METHOD(RowsCaller, "what was compiled is served by a daemon without that Triton and is not stale") {
  define_rows();
  compile_default();
  restart();
  FakeAgent later(address(), with_triton(compiling_hello("later"), "3.7.0"));
  eventually([&] { return status().agents() == 1; });
  const Got got = get(request);
  REQUIRE(got.status.ok());
  CHECK(departures_of(got) == std::vector<int>{v1::DEFAULT_CONFIGURATION});
  CHECK_THAT(got.reply.why(), !Contains("toolchain"));
  CHECK_FALSE(later.try_lease(std::chrono::milliseconds(100)));
}

/// The first configuration of "rows" as a kernel of its own.
std::shared_ptr<const KernelSpec> first_of_rows() {
  TritonSpec one;
  one.json["triton"]["key"] = OrderedJson::array();
  one.json["configurations"] = OrderedJson::array({one.json["configurations"][0]});
  one.texts.pop_back();
  return one.parse();
}

TEST_CASE_METHOD(RowsCaller,
                 "an artifact that was compiled for one kernel answers for another one of its text") {
  define_rows();
  compile_default();
  restart();
  const auto one = first_of_rows();
  REQUIRE(define(one->bundle).ok());
  request.set_kernel(one->name);
  const Got got = get(request);
  REQUIRE(got.status.ok());
  CHECK(got.reply.kernel() == one->name);
  CHECK(jobs().empty());
}

TEST_CASE_METHOD(RowsCaller, "a kernel of one configuration is compiled and never measured") {
  AutoAgent agent(address(), with_triton(compiling_hello()));
  const auto one = first_of_rows();
  REQUIRE(define(one->bundle).ok());
  request.set_kernel(one->name);
  request.set_tune(v1::AUTO);
  REQUIRE(get(request).status.ok());
  CHECK(agent.tuned() == 0);
  CHECK(status().misses_wanted() == 0);
  v1::TuneRequest tune_it = order();
  tune_it.set_kernel(one->name);
  grpc::Status refused;
  tune(tune_it, &refused);
  CHECK(refused.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
  CHECK_THAT(refused.error_message(), Contains("has one configuration"));
}

TEST_CASE_METHOD(RowsCaller, "a record of a kernel that no agent compiles is not measured again") {
  define_rows();
  {
    AutoAgent agent(address(), with_triton(hello_with(h200_facts())));
    REQUIRE(tune(order()).back().job().state() == v1::Job::DONE);
  }
  eventually([&] { return status().agents() == 0; });
  FakeAgent agent(address(), hello_with(h200_facts()));
  eventually([&] { return status().agents() == 1; });
  v1::TuneRequest verify = order();
  verify.mutable_verify()->set_all(true);
  grpc::Status status;
  tune(verify, &status);
  CHECK(status.error_code() == grpc::StatusCode::NOT_FOUND);
  CHECK_THAT(status.error_message(), Contains("by an agent that compiles the kernel"));
}

TEST_CASE_METHOD(RowsCaller,
                 "the shared memory that the compiler decided is in the plan, after a restart too") {
  define_rows();
  {
    FakeAgent agent(address(), with_triton(compiling_hello()));
    auto call = std::async(std::launch::async, [&] { return get(request); });
    const v1::LeaseGrant lease = agent.wait_for_lease();
    v1::Batch batch;
    *batch.add_artifacts() = fake_trial(lease, spec->defaults.front(), toolchain_for(lease)).artifact;
    batch.mutable_artifacts(0)->mutable_info()->mutable_entries(0)->set_launch_shared_bytes(65'536);
    v1::JobResult done;
    done.set_status(v1::JobResult::DONE);
    REQUIRE((agent.send_batch(lease, batch) && agent.send_result(lease, done)));
    CHECK(call.get().reply.plan().launches(0).shared_bytes() == 65'536);
  }
  restart();
  const Got got = get(request);
  REQUIRE(got.status.ok());
  CHECK(got.reply.plan().launches(0).shared_bytes() == 65'536);
}

TEST_CASE_METHOD(RowsCaller, "a kernel that is defined for another architecture is refused by name") {
  define_rows();
  request.mutable_device()->mutable_facts()->set_cc_major(8);
  const grpc::Status status = get(request).status;
  CHECK(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK_THAT(status.error_message(), Contains("is defined for sm_90 and not for sm_80"));
}

TEST_CASE_METHOD(RowsCaller, "the check of a Triton spec is compiled where its Triton is") {
  FakeAgent cuda(address(), compiling_hello("cuda"));
  FakeAgent triton(address(), triton_alone(compiling_hello("triton")));
  eventually([&] { return status().agents() == 2; });
  v1::CheckKernelRequest check;
  check.set_file((folder() / "rows.json").string());
  check.set_spec_json(spec->bundle.spec_json);
  for (const SourceFile& file : spec->bundle.files) {
    v1::SourceFile& added = *check.add_files();
    added.set_path(file.path);
    added.set_content(file.content);
  }
  v1::CheckKernelReply reply;
  auto call = std::async(std::launch::async, [&] {
    grpc::ClientContext context;
    return stub().CheckKernel(&context, check, &reply);
  });
  const v1::CheckOrder order = triton.wait_for_check();
  CHECK(order.architecture() == "sm_90");
  v1::CheckResult result;
  result.set_id(order.id());
  result.set_outcome(v1::COMPILE);
  result.set_log("rows.ttir:1:1: error");
  triton.send_check(result);
  const grpc::Status status = call.get();
  CHECK_THAT(status.error_message(), Contains("/configurations: does not compile for sm_90"));
  check.add_architectures("sm_80");
  grpc::ClientContext context;
  CHECK_THAT(stub().CheckKernel(&context, check, &reply).error_message(),
             Contains("is defined for sm_90 and not for sm_80"));
}

TEST_CASE("an agent that names no ptxas for one of a Triton's architectures is refused") {
  DaemonFixture daemon;
  v1::Hello hello = with_triton(compiling_hello());
  hello.mutable_toolchains(1)->add_architectures("sm_100");
  FakeAgent agent(daemon.address(), hello);
  CHECK_THAT(agent.wait_for_end(), Contains("hello.toolchains[1].assemblers: has 2 versions for 3"));
}

}  // namespace
}  // namespace cubind::test
