// Broken kernels, each with one defect, as a search space may hold them. tests/unit/verify has those that are
// seen in a buffer on the host as well.
#include <catch2/catch.hpp>

#include "tests/gpu/device_worker/device_worker_process.hpp"
#include "tests/gpu/device_worker/requests.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;

// What verifying the kernel comes to, in a worker of its own.
v1::DeviceReply verified(DeviceWorkerProcess& worker, const std::string& kernel,
                         const BufferOptions& x_options = {}) {
  const Requests problem = row_problem(x_options);
  const v1::LaunchPlan plan = row_plan(problem, kernel);
  const v1::DeviceReply prepared = worker.ask(problem.prepare());
  INFO(prepared.detail());
  REQUIRE(prepared.outcome() == v1::CORRECT);
  REQUIRE(worker.ask(Requests::load(plan)).outcome() == v1::CORRECT);
  return worker.ask(Requests::verify(plan));
}

v1::DeviceReply verified(const std::string& kernel, const BufferOptions& x_options = {}) {
  kernels_cubin();
  DeviceWorkerProcess worker;
  return verified(worker, kernel, x_options);
}

TEST_CASE("a right kernel is correct and has the same bits in two runs") {
  const v1::DeviceReply reply = verified("right");
  INFO(reply.DebugString());
  CHECK(reply.outcome() == v1::CORRECT);
  CHECK(reply.verification().same_bits());
  CHECK(reply.verification().mismatches() == 0);
  CHECK(reply.verification().reference() == "kernel");
}

TEST_CASE("a removed row guard is a wrong result by the red zone") {
  const v1::DeviceReply reply = verified("no_row_guard");
  CHECK(reply.outcome() == v1::WRONG_RESULT);
  CHECK_FALSE(reply.sticky());
  CHECK_THAT(reply.detail(),
             Contains("bytes were written behind the buffer, the first one 0 bytes past its end"));
}

TEST_CASE("a wrong last row is a wrong result with its place and count") {
  const v1::DeviceReply reply = verified("wrong_last_row");
  CHECK(reply.outcome() == v1::WRONG_RESULT);
  CHECK(reply.verification().mismatches() == kColumns);
  CHECK(reply.verification().worst_index() >= (kRows - 1) * kColumns);
  CHECK(reply.verification().worst_output() == "y");
}

TEST_CASE("a last row that is not written is a wrong result") {
  const v1::DeviceReply reply = verified("unwritten_last_row");
  CHECK(reply.outcome() == v1::WRONG_RESULT);
  CHECK(reply.verification().mismatches() == kColumns);
}

TEST_CASE("one element written too far is a wrong result by the red zone") {
  CHECK(verified("one_too_far").detail() ==
        "y: 4 bytes were written behind the buffer, the first one 0 bytes past its end");
  CHECK(verified("one_before").detail() ==
        "y: 4 bytes were written before the buffer, the first one 4 bytes before its start");
}

TEST_CASE("a read past the end is a wrong result by the NaN that it computes with") {
  const v1::DeviceReply reply = verified("reads_past_the_end");
  CHECK(reply.outcome() == v1::WRONG_RESULT);
  CHECK(reply.verification().mismatches() == kRows);
}

TEST_CASE("an input that is overwritten is a wrong result") {
  CHECK_THAT(verified("overwrites_input").detail(), Contains("x: the input was overwritten"));
}

TEST_CASE("a trial that is not verified is watched for what it writes when it is timed") {
  const auto measured = [](const std::string& kernel) {
    kernels_cubin();
    DeviceWorkerProcess worker;
    const Requests problem = row_problem();
    const v1::LaunchPlan plan = row_plan(problem, kernel);
    REQUIRE(worker.ask(problem.prepare()).outcome() == v1::CORRECT);
    REQUIRE(worker.ask(Requests::load(plan)).outcome() == v1::CORRECT);
    v1::DeviceRequest request = Requests::measure(plan, 1);
    request.mutable_measure()->set_guarded(true);
    return worker.ask(request).measured(0);
  };
  CHECK(measured("right").outcome() == v1::CORRECT);
  CHECK(measured("right").samples_us_size() == 1);
  CHECK(measured("wrong_last_row").outcome() == v1::CORRECT);  // its results are not looked at
  CHECK(measured("one_too_far").outcome() == v1::WRONG_RESULT);
  CHECK(measured("one_too_far").samples_us_size() == 0);
  CHECK(measured("one_before").detail() ==
        "y: 4 bytes were written before the buffer, the first one 4 bytes before its start");
  CHECK_THAT(measured("overwrites_input").detail(), Contains("x: the input was overwritten"));
}

TEST_CASE("a worker serves the next kernel after a wrong result") {
  kernels_cubin();
  DeviceWorkerProcess worker;
  CHECK(verified(worker, "overwrites_input").outcome() == v1::WRONG_RESULT);
  CHECK(verified(worker, "no_row_guard").outcome() == v1::WRONG_RESULT);
  CHECK(verified(worker, "right").outcome() == v1::CORRECT);
}

TEST_CASE("a misaligned read is a sticky runtime outcome and ends the worker") {
  kernels_cubin();
  DeviceWorkerProcess worker;
  const v1::DeviceReply reply = verified(worker, "misaligned_read");
  CHECK(reply.outcome() == v1::RUNTIME);
  CHECK(reply.sticky());
  CHECK_THAT(reply.detail(), Contains("CUDA_ERROR_MISALIGNED_ADDRESS (716)"));
  CHECK(worker.ended().code == 3);
  CHECK(verified("right").outcome() == v1::CORRECT);
}

TEST_CASE("an illegal address is a sticky runtime outcome and ends the worker") {
  kernels_cubin();
  DeviceWorkerProcess worker;
  const v1::DeviceReply reply = verified(worker, "illegal_address");
  CHECK(reply.outcome() == v1::RUNTIME);
  CHECK(reply.sticky());
  CHECK_THAT(reply.detail(), Contains("CUDA_ERROR_ILLEGAL_ADDRESS (700)"));
  CHECK(worker.ended().code == 3);
  CHECK(verified("right").outcome() == v1::CORRECT);
}

TEST_CASE("a kernel that needs more alignment than declared does not pass") {
  BufferOptions declared;
  declared.align = 4;
  const v1::DeviceReply reply = verified("vector_read", declared);
  CHECK(reply.outcome() == v1::RUNTIME);
  CHECK_THAT(reply.detail(), Contains("MISALIGNED"));
  declared.align = 16;
  CHECK(verified("vector_read", declared).outcome() == v1::CORRECT);
}

TEST_CASE("an infinite loop is ended by killing the group and the GPU is free again") {
  kernels_cubin();
  DeviceWorkerProcess hung;
  const Requests problem = row_problem();
  const v1::LaunchPlan plan = row_plan(problem, "infinite_loop");
  REQUIRE(hung.ask(problem.prepare()).outcome() == v1::CORRECT);
  REQUIRE(hung.ask(Requests::load(plan)).outcome() == v1::CORRECT);
  CHECK_FALSE(hung.ask_within(Requests::verify(plan), std::chrono::seconds(2)));
  hung.process().kill_group();
  CHECK(hung.ended().signal == 9);
  CHECK(verified("right").outcome() == v1::CORRECT);
}

}  // namespace
}  // namespace cubind::test
