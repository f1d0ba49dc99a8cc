#include <catch2/catch.hpp>

#include <algorithm>
#include <functional>
#include <future>

#include "base/json.hpp"
#include "tests/service/server/daemon_fixture.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

/// `edit`: of the spec.
v1::CheckKernelRequest edited_check(const std::function<void(OrderedJson&)>& edit) {
  v1::CheckKernelRequest request = check_vector_add();
  OrderedJson spec = OrderedJson::parse(request.spec_json());
  edit(spec);
  request.set_spec_json(spec.dump());
  return request;
}

v1::CheckResult answer(const v1::CheckOrder& order, v1::Outcome outcome, const std::string& log) {
  v1::CheckResult result;
  result.set_id(order.id());
  result.set_outcome(outcome);
  result.set_log(log);
  return result;
}

v1::CheckResult correct(const v1::CheckOrder& order) { return answer(order, v1::CORRECT, ""); }

v1::CheckResult faulty(const v1::CheckOrder& order, const std::string& pointer, const std::string& cause) {
  v1::CheckResult result = correct(order);
  v1::SpecFault& fault = *result.add_faults();
  fault.set_pointer(pointer);
  fault.set_cause(cause);
  return result;
}

using Answering = std::function<v1::CheckResult(const v1::CheckOrder&)>;

struct CheckFixture : DaemonFixture {
  v1::CheckKernelReply reply;  // of the latest check

  grpc::Status check(const v1::CheckKernelRequest& request) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    reply.Clear();
    return stub().CheckKernel(&context, request, &reply);
  }
  /// A check that the agent answers.
  grpc::Status check(const v1::CheckKernelRequest& request, FakeAgent& agent, const Answering& answering) {
    auto call = std::async(std::launch::async, [&] { return check(request); });
    agent.send_check(answering(agent.wait_for_check()));
    return call.get();
  }
  std::string refusal(const v1::CheckKernelRequest& request) { return refusal(check(request)); }
  /// What is said against vector_add if the compiling agent answers so.
  std::string refusal(const Answering& answering) {
    FakeAgent agent(address(), compiling_hello());
    return refusal(check(check_vector_add(), agent, answering));
  }

 private:
  static std::string refusal(const grpc::Status& status) {
    CHECK(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
    return status.error_message();
  }
};

TEST_CASE("checking a kernel counts its configurations and has the default compiled and stores nothing") {
  CheckFixture daemon;
  FakeAgent agent(daemon.address(), compiling_hello());
  REQUIRE(daemon.check(check_vector_add(), agent, correct).ok());
  REQUIRE(daemon.reply.problems_size() == 1);
  CHECK(daemon.reply.problems(0).total() == 48);
  CHECK(daemon.reply.problems(0).valid() > 0);
  CHECK(daemon.reply.problems(0).first_default().values_size() == 3);
  CHECK(daemon.reply.compiled_size() == 1);
  CHECK(daemon.status().artifacts() == 0);
}

TEST_CASE("a check is for the device that is named and a spec with architecture features gets the suffix") {
  CheckFixture daemon;
  FakeAgent agent(daemon.address(), hello_with(h200_facts()));
  v1::CheckKernelRequest request = edited_check([](OrderedJson& spec) { spec["arch_features"] = true; });
  for (const char* device : {"", "nvidia-h200"}) {  // the only one that is offered
    request.set_device(device);
    const grpc::Status status = daemon.check(request, agent, [](const v1::CheckOrder& order) {
      CHECK(order.architecture() == "sm_90a");
      return correct(order);
    });
    REQUIRE(status.ok());
    CHECK(daemon.reply.compiled(0).architecture() == "sm_90a");
    const bool is_told = std::ranges::count(daemon.reply.warnings(),
                                            "note: no device was named: counted for nvidia-h200") == 1;
    CHECK(is_told == request.device().empty());
  }
  request.set_device("nvidia-h20");
  CHECK(daemon.check(request).error_code() == grpc::StatusCode::NOT_FOUND);
}

TEST_CASE("a check tells how each constraint thins the space") {
  CheckFixture daemon;
  const auto request = edited_check([](OrderedJson& spec) {
    spec["constraints"] = {"VECTOR <= 4", "THREADS != 256", "N < 0"};
  });
  REQUIRE(daemon.check(request).ok());
  const auto& report = daemon.reply.problems(0);
  CHECK(report.valid() == 0);
  REQUIRE(report.thinning_size() == 3);
  std::uint64_t left = report.total();
  for (const auto& step : report.thinning()) {
    CHECK(step.rejected() == left - step.left());
    left = step.left();
  }
  CHECK(left == 0);
  CHECK(report.thinning(1).where() == "/constraints/1");
  CHECK(report.thinning(1).condition() == "THREADS != 256");
  CHECK(report.thinning(1).rejected() > 0);
}

TEST_CASE("a check compares an array's type, and for a given problem its size") {
  CheckFixture daemon;
  v1::CheckKernelRequest request = edited_check([](OrderedJson& spec) {
    spec["problem"].erase("bucket");
    spec["arguments"]["a"]["fill"] = {{"npy", "x.npy"}};
  });
  v1::SourceFile& file = *request.add_files();
  file.set_path("x.npy");
  const auto refusal = [&](const std::string& type, std::size_t elements, std::size_t bytes) {
    std::string header =
        "{'descr': '<" + type + "', 'fortran_order': False, 'shape': (" + std::to_string(elements) + ",), }";
    header.resize(117, ' ');
    file.set_content(std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + "\n" +
                     std::string(elements * bytes, '\0'));
    return daemon.check(request).error_message();
  };
  CHECK(refusal("f4", 4096, 4).empty());
  CHECK_THAT(refusal("f8", 4096, 8),
             Contains("elements of f64, the buffer has f32") && Contains("with astype()"));
  CHECK_THAT(refusal("f4", 4000, 4), Contains("[4000]") && Contains("the buffer has 4096"));
  request.clear_problems();
  CHECK(refusal("f4", 4000, 4).empty());  // the caller's sizes are not known
  CHECK_THAT(refusal("f8", 4000, 8), Contains("elements of f64"));
}

TEST_CASE("a kernel that does not compile is refused with its file and the compiler's words") {
  CheckFixture daemon;
  const std::string refusal = daemon.refusal([](const v1::CheckOrder& order) {
    return answer(order, v1::COMPILE, "error: identifier \"x\" is undefined");
  });
  CHECK_THAT(refusal, StartsWith("mine.json /source") && Contains("is undefined"));
}

TEST_CASE("arguments that do not fit the compiled entries are reported with their places and types") {
  CheckFixture daemon;
  const std::string refusal = daemon.refusal([](const v1::CheckOrder& order) {
    v1::CheckResult result = faulty(order, "/launches/0/arguments/0", "does not fit");
    result.MergeFrom(faulty(order, "/launches/0/arguments/3", "does not fit"));
    return result;
  });
  CHECK(refusal ==
        "mine.json /launches/0/arguments/0: does not fit\nmine.json /launches/0/arguments/3: does not fit");
}

TEST_CASE("a limit that the default exceeds is an error at its place") {
  CheckFixture daemon;
  const std::string refusal = daemon.refusal([](const v1::CheckOrder& order) {
    CHECK(order.device_constants_size() == 4);
    v1::CheckResult result = faulty(order, "/launches/0/block", "too many threads");
    result.mutable_faults(0)->set_is_limit(true);
    return result;
  });
  CHECK_THAT(refusal,
             StartsWith("mine.json /launches/0/block: too many threads (THREADS=") && Contains(" at N=4096"));
}

TEST_CASE("a spec that does not parse is refused with file pointer and cause") {
  CheckFixture daemon;
  v1::CheckKernelRequest request = check_vector_add();
  std::string& text = *request.mutable_spec_json();
  text.replace(text.find("[128, 256"), 4, "[0");
  CHECK_THAT(daemon.refusal(request), StartsWith("mine.json"));
}

TEST_CASE("a tolerance that a problem has not is refused before a job meets it") {
  CheckFixture daemon;
  const auto request = edited_check([](OrderedJson& spec) {
    spec["tolerance"]["f32"]["atol"] = {{"factor", 1e-6}, {"sqrt", "N - 4097"}};
  });
  CHECK_THAT(daemon.refusal(request),
             StartsWith("mine.json /tolerance/f32/atol: \"N - 4097\" is -1 for N=4096"));
}

TEST_CASE("a problem for which an expression fails is reported and the others are checked") {
  CheckFixture daemon;
  FakeAgent agent(daemon.address(), compiling_hello());
  v1::CheckKernelRequest request =
      edited_check([](OrderedJson& spec) { spec["work"]["flops"] = "N * N * N * N * N"; });
  *request.mutable_problems(0) = vector_add(1 << 20).problem();
  *request.add_problems() = vector_add(64).problem();
  REQUIRE(daemon.check(request, agent, correct).ok());
  REQUIRE(daemon.reply.problems_size() == 2);
  CHECK_THAT(daemon.reply.problems(0).error(), Contains("/work/flops") && Contains("1048576"));
  CHECK(daemon.reply.problems(1).error().empty());
  CHECK(daemon.reply.problems(1).valid() > 0);
  CHECK(daemon.reply.compiled_size() == 1);
}

TEST_CASE("what is no architecture is refused with how one is written") {
  CheckFixture daemon;
  v1::CheckKernelRequest request = check_vector_add();
  request.add_architectures("90");
  CHECK_THAT(daemon.refusal(request), Contains("\"90\" is not an architecture: write sm_90"));
}

TEST_CASE("the reference is compiled with the default configuration") {
  CheckFixture daemon;
  const std::string refusal = daemon.refusal([](const v1::CheckOrder& order) {
    return faulty(order, "/reference/source", "does not compile for sm_90: expected a ';'");
  });
  CHECK_THAT(refusal, StartsWith("mine.json /reference/source: does not compile for sm_90"));
}

TEST_CASE("kernels are listed with their arguments and the shapes of these") {
  DaemonFixture daemon;
  v1::ListKernelsReply reply;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  REQUIRE(daemon.stub().ListKernels(&context, {}, &reply).ok());
  const auto kernel = std::ranges::find(reply.kernels(), "vector_add", &v1::Kernel::name);
  REQUIRE(kernel != reply.kernels().end());
  REQUIRE(kernel->arguments_size() == 4);
  CHECK(kernel->arguments(0).name() == "a");
  CHECK(kernel->arguments(0).type() == "T");
  CHECK(kernel->arguments(0).shape_size() == 1);
  CHECK(kernel->arguments(0).shape(0) == "N");
}

TEST_CASE("what is no error of a kernel is a warning with its place") {
  CheckFixture daemon;
  const auto request = edited_check([](OrderedJson& spec) {
    spec["tunables"]["VECTOR"] = {2};
    spec["default"] = {{{"THREADS", 256}, {"VECTOR", 2}, {"UNROLL", 1}}};
    spec["constraints"].push_back("THREADS != 256");
    spec["work"].erase("min_read_bytes");
  });
  REQUIRE(daemon.check(request).ok());
  const auto warnings_at = [&](const char* start) {
    return std::ranges::count_if(daemon.reply.warnings(),
                                 [&](const std::string& one) { return one.starts_with(start); });
  };
  CHECK(warnings_at("/tunables/VECTOR: has one value, so it tunes nothing") == 1);
  CHECK(warnings_at("/default: none of it is valid for N=4096,T=f32 on") == 1);
  CHECK(warnings_at("/work/min_read_bytes") == 1);
}

TEST_CASE("a configuration with which nothing is launched is a warning") {
  CheckFixture daemon;
  const auto warned = [&](const char* grid) {
    REQUIRE(
        daemon.check(edited_check([&](OrderedJson& spec) { spec["launches"][0]["grid"] = {grid}; })).ok());
    return std::ranges::any_of(daemon.reply.warnings(), [](const std::string& one) {
      return one.starts_with("/launches: nothing is launched for N=4096,T=f32 with THREADS=");
    });
  };
  CHECK(warned("N / (THREADS * VECTOR * 1000000)"));
  CHECK_FALSE(warned("cdiv(N, THREADS * VECTOR)"));
}

TEST_CASE("without an agent a kernel is checked and said not to be compiled") {
  CheckFixture daemon;
  REQUIRE(daemon.check(check_vector_add()).ok());
  CHECK(daemon.reply.compiled().empty());
  CHECK_THAT(daemon.reply.warnings(daemon.reply.warnings_size() - 1), Contains("no agent"));
}

TEST_CASE("a compiler's words that are not ASCII arrive as far as a header holds them") {
  CheckFixture daemon;
  std::string log;
  for (int i = 0; i < 3000; ++i) {
    log += "\u20ac";
  }
  CHECK_THAT(daemon.refusal([&](const v1::CheckOrder& order) { return answer(order, v1::COMPILE, log); }),
             Contains("\u20ac") && Catch::Matchers::EndsWith("..."));
}

TEST_CASE("a check that its caller has left does not keep the others waiting") {
  CheckFixture daemon;
  v1::CheckKernelRequest request = edited_check([](OrderedJson& spec) {
    for (const char* name : {"X1", "X2", "X3", "X4"}) {
      for (int value = 1; value <= 20; ++value) {
        spec["tunables"][name].push_back(value);
      }
      for (OrderedJson& configuration : spec["default"]) {
        configuration[name] = 1;
      }
    }
    spec["launches"][0]["shared_bytes"] = "X1 + X2 + X3 + X4";
    spec["constraints"].push_back("X1 + X2 + X3 + X4 + N < 0");
  });
  for (int i = 0; i < 99; ++i) {
    *request.add_problems() = request.problems(0);
  }
  grpc::ClientContext left, context;
  left.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(30));
  v1::CheckKernelReply reply;
  CHECK(daemon.stub().CheckKernel(&left, request, &reply).error_code() ==
        grpc::StatusCode::DEADLINE_EXCEEDED);
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
  v1::ListKernelsReply kernels;
  CHECK(daemon.stub().ListKernels(&context, {}, &kernels).ok());
}

/// A check of its own thread, by a caller who can go.
struct Caller {
  Caller(CheckFixture& daemon, const std::string& name) {
    context.AddMetadata("cubind-caller", name);
    call = std::async(std::launch::async, [this, &daemon] {
      v1::CheckKernelReply reply;
      return daemon.stub().CheckKernel(&context, check_vector_add(), &reply).error_code();
    });
  }
  grpc::ClientContext context;
  std::future<grpc::StatusCode> call;
};

TEST_CASE("a caller who checks much leaves room for others and frees his own when he leaves") {
  CheckFixture daemon;
  FakeAgent agent(daemon.address(), compiling_hello());
  Caller first(daemon, "much");
  const std::string begun = agent.wait_for_check().id();
  Caller second(daemon, "much"), other(daemon, "other");
  const v1::CheckOrder others = agent.wait_for_check();
  other.context.TryCancel();
  CHECK(other.call.get() == grpc::StatusCode::CANCELLED);
  CHECK(agent.wait_for_end_of_lease().lease_id() == others.id());
  first.context.TryCancel();
  CHECK(agent.wait_for_end_of_lease().lease_id() == begun);
  agent.send_check(correct(agent.wait_for_check()));
  CHECK(second.call.get() == grpc::StatusCode::OK);
}

}  // namespace
}  // namespace cubind::test
