#include <catch2/catch.hpp>

#include <future>

#include "tests/service/server/daemon_fixture.hpp"
#include "tests/support/paths.hpp"
#include "tuner/spec/kernel_spec.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

v1::CheckKernelRequest check_vector_add() {
  const auto spec = load_kernel_spec((source_dir() / "variants" / "vector_add" / "vector_add.json").string());
  v1::SpecBundle bundle;
  to_wire(spec->bundle, bundle);
  v1::CheckKernelRequest request;
  request.set_file("mine.json");
  request.set_spec_json(bundle.spec_json());
  *request.mutable_files() = bundle.files();
  *request.add_problems() = vector_add(4096).problem();
  return request;
}

struct CheckFixture : DaemonFixture {
  grpc::Status check(const v1::CheckKernelRequest& request, v1::CheckKernelReply& reply) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    return stub().CheckKernel(&context, request, &reply);
  }
};

v1::CheckResult answer(const v1::CheckOrder& order, v1::Outcome outcome, const std::string& log) {
  v1::CheckResult result;
  result.set_id(order.id());
  result.set_outcome(outcome);
  result.set_log(log);
  return result;
}

TEST_CASE("checking a kernel counts its configurations and has the default compiled and stores nothing") {
  CheckFixture daemon;
  FakeAgent agent(daemon.address(), compiling_hello());
  v1::CheckKernelReply reply;
  auto call = std::async(std::launch::async, [&] { return daemon.check(check_vector_add(), reply); });
  agent.send_check(answer(agent.wait_for_check(), v1::CORRECT, ""));
  REQUIRE(call.get().ok());
  REQUIRE(reply.problems_size() == 1);
  CHECK(reply.problems(0).total() == 48);
  CHECK(reply.problems(0).valid() > 0);
  CHECK(reply.problems(0).first_default().values_size() == 3);
  CHECK(reply.compiled_size() == 1);
  CHECK(daemon.status().artifacts() == 0);
}

TEST_CASE("a kernel that does not compile is refused with its file and the compiler's words") {
  CheckFixture daemon;
  FakeAgent agent(daemon.address(), compiling_hello());
  v1::CheckKernelReply reply;
  auto call = std::async(std::launch::async, [&] { return daemon.check(check_vector_add(), reply); });
  agent.send_check(answer(agent.wait_for_check(), v1::COMPILE, "error: identifier \"x\" is undefined"));
  const grpc::Status status = call.get();
  CHECK(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK_THAT(status.error_message(), StartsWith("mine.json /source"));
  CHECK_THAT(status.error_message(), Contains("is undefined"));
}

TEST_CASE("a spec that does not parse is refused with file pointer and cause") {
  CheckFixture daemon;
  v1::CheckKernelRequest request = check_vector_add();
  std::string& text = *request.mutable_spec_json();
  text.replace(text.find("[128, 256"), 4, "[0");
  v1::CheckKernelReply reply;
  const grpc::Status status = daemon.check(request, reply);
  CHECK(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK_THAT(status.error_message(), StartsWith("mine.json"));
}

TEST_CASE("without an agent a kernel is checked and said not to be compiled") {
  CheckFixture daemon;
  v1::CheckKernelReply reply;
  REQUIRE(daemon.check(check_vector_add(), reply).ok());
  CHECK(reply.compiled().empty());
  CHECK_THAT(reply.warnings(reply.warnings_size() - 1), Contains("no agent"));
}

}  // namespace
}  // namespace cubind::test
