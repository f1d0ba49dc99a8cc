#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "base/random.hpp"
#include "tests/gpu/device_worker/device_worker_process.hpp"
#include "tests/gpu/device_worker/requests.hpp"
#include "tests/support/host_verification.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;

v1::DeviceReply verified(DeviceWorkerProcess& worker, const Requests& problem, const v1::LaunchPlan& plan,
                         std::uint64_t seed = 1) {
  const v1::DeviceReply prepared = worker.ask(problem.prepare());
  INFO(prepared.detail());
  REQUIRE(prepared.outcome() == v1::CORRECT);
  const v1::DeviceReply loaded = worker.ask(Requests::load(plan));
  INFO(loaded.detail());
  REQUIRE(loaded.outcome() == v1::CORRECT);
  return worker.ask(Requests::verify(plan, seed));
}

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

// Random values of a type, special ones among them; every `wrong_every`-th departs from `like`.
std::string make_elements(DType type, std::uint64_t count, const std::string* like,
                          std::uint64_t wrong_every) {
  std::string data(count * size_of(type), '\0');
  const std::span<std::byte> bytes = std::as_writable_bytes(std::span(data));
  Random random(std::uint64_t{42});
  for (std::uint64_t i = 0; i < count; ++i) {
    double value = std::floor(random.uniform() * 200) - (type == DType::U8 ? 0 : 100);
    if (i % 97 == 3) {
      value = std::numeric_limits<double>::quiet_NaN();
    }
    if (i % 89 == 5) {
      value = -std::numeric_limits<double>::infinity();
    }
    if (like != nullptr && i % wrong_every == 0) {
      value += 0.25 * static_cast<double>(1 + i % 5);
    }
    verify::store_element(type, bytes, i, value);
  }
  return data;
}

TEST_CASE("the device compares as the host does in every type") {
  const DType type = GENERATE(DType::F64, DType::F32, DType::F16, DType::Bf16, DType::E4m3, DType::E5m2,
                              DType::I64, DType::I32, DType::I8, DType::U8);
  constexpr std::uint64_t kCount = 100'003;
  const std::string name(to_string(type));
  const std::string out = make_elements(type, kCount, nullptr, 1);
  const std::string expected = make_elements(type, kCount, &out, 1001);
  const verify::Bounds bounds{.rtol = 1e-3, .atol = 1e-3};
  const verify::Comparison host = verify::compare(type, bytes_of(out), type, bytes_of(expected), bounds);

  Requests problem;
  problem.buffer("x", name, v1::IN, kCount, {.fill = "file", .content = out})
      .buffer("y", name, v1::OUT, kCount, {.rtol = bounds.rtol, .atol = bounds.atol})
      .expected("y", name, expected);
  const auto bytes = static_cast<std::int64_t>(out.size());
  const auto plan = Requests::plan({problem.launch("copy_bytes", static_cast<std::uint32_t>(bytes / 256 + 1),
                                                   Requests::dim(256), {"x", "y"}, {bytes})});
  DeviceWorkerProcess worker;
  const v1::VerificationResult device = verified(worker, problem, plan).verification();
  INFO(name << " " << device.DebugString());
  CHECK((device.outcome() == v1::CORRECT) == host.passed());
  CHECK(device.mismatches() == host.mismatches);
  CHECK(device.worst_index() == host.worst_index);
  CHECK(device.worst_excess() == Approx(host.worst_excess));
  CHECK(device.reference() == "expected");
}

TEST_CASE("the device paints its red zones as the host does") {
  constexpr std::int64_t kCount = 1003;
  constexpr auto kZone = static_cast<std::int64_t>(verify::kRedZoneBytes);
  std::vector<std::byte> paint(2 * verify::kRedZoneBytes);
  verify::paint_red_zone(std::span(paint).first(verify::kRedZoneBytes), {0, verify::ZoneSide::Front});
  verify::paint_red_zone(std::span(paint).last(verify::kRedZoneBytes), {0, verify::ZoneSide::Back});
  Requests problem;
  problem.buffer("x", "u8", v1::IN, kCount)
      .buffer("y", "u8", v1::OUT, paint.size(), {.rtol = 0, .atol = 0})
      .expected("y", "u8", std::string(reinterpret_cast<const char*>(paint.data()), paint.size()));
  const auto plan = Requests::plan(
      {problem.launch("read_zones", kZone / 256, Requests::dim(256), {"x", "y"}, {kCount, kZone})});
  DeviceWorkerProcess worker;
  const v1::DeviceReply reply = verified(worker, problem, plan);
  INFO(reply.detail());
  CHECK(reply.outcome() == v1::CORRECT);
}

TEST_CASE("a copy that takes paint from one red zone to another is caught") {
  constexpr std::int64_t kCount = 1000;
  Requests problem;
  problem.buffer("x", "u8", v1::IN, kCount, {.fill = "constant", .parameters = {7}})
      .buffer("y", "u8", v1::OUT, kCount, {.rtol = 0, .atol = 0})
      .expected("y", "u8", std::string(kCount, '\7'));
  const auto plan =
      Requests::plan({problem.launch("copy_bytes", 8, Requests::dim(256), {"x", "y"}, {kCount + 2})});
  DeviceWorkerProcess worker;
  CHECK_THAT(verified(worker, problem, plan).detail(), Contains("written behind the buffer"));
}

TEST_CASE("an inout buffer is restored before each launch and the reference gets the same copy") {
  constexpr std::int64_t kCount = 5000;
  Requests problem;
  problem.buffer("y", "f32", v1::INOUT, kCount, {.fill = "uniform", .parameters = {-1, 1}});
  const v1::Launch launch = problem.launch("add_one", 20, Requests::dim(256), {"y"}, {kCount});
  problem.reference(launch);
  const auto plan = Requests::plan({launch});
  DeviceWorkerProcess worker;
  CHECK(verified(worker, problem, plan).outcome() == v1::CORRECT);
  CHECK(worker.ask(Requests::measure(plan, 5)).measured(0).samples_us_size() == 5);
  CHECK(worker.ask(Requests::verify(plan, 2)).outcome() == v1::CORRECT);
}

// Of 1024 numbers the reference writes `reference`, the variant `variant`.
v1::DeviceReply verified_copy(std::int64_t reference, std::int64_t variant, bool partial) {
  constexpr std::int64_t kCount = 1024;
  Requests problem;
  problem.buffer("x", "f32", v1::IN, kCount)
      .buffer("y", "f32", v1::OUT, kCount, {.partial = partial, .rtol = 0, .atol = 0});
  const auto copy = [&problem](std::int64_t numbers) {
    return problem.launch("copy_bytes", 16, Requests::dim(256), {"x", "y"}, {4 * numbers});
  };
  problem.reference(copy(reference));
  DeviceWorkerProcess worker;
  return verified(worker, problem, Requests::plan({copy(variant)}));
}

// A summand for each block: the reference has eight of them for a row, the variant `blocks`.
v1::DeviceReply verified_summands(std::uint32_t blocks, std::vector<std::uint64_t> summed) {
  constexpr std::int64_t kRows = 64, kCount = 4096, kMost = 8;
  Requests problem;
  problem.buffer("x", "f32", v1::IN, kRows * kCount)
      .buffer("y", "f32", v1::OUT, kRows * kMost,
              {.partial = true, .summed = std::move(summed), .rtol = 1e-3, .atol = 1e-3});
  const auto launch = [&problem](std::uint32_t of) {
    return problem.launch("summands", of * kRows, Requests::dim(256), {"x", "y"}, {of, kCount, kMost});
  };
  problem.reference(launch(kMost));
  DeviceWorkerProcess worker;
  return verified(worker, problem, Requests::plan({launch(blocks)}));
}

TEST_CASE("an output of partial sums may have as many summands as the variant has blocks") {
  const v1::DeviceReply four = verified_summands(4, {64, 8});
  INFO(four.detail());
  CHECK(four.outcome() == v1::CORRECT);
  CHECK(verified_summands(8, {64, 8}).outcome() == v1::CORRECT);
  CHECK(verified_summands(4, {}).outcome() == v1::WRONG_RESULT);
  CHECK(verified_summands(3, {64, 8}).outcome() == v1::WRONG_RESULT);  // which leaves an element out
}

TEST_CASE("a partial output is left alone where the reference leaves it alone, and nowhere else") {
  const v1::DeviceReply same = verified_copy(1000, 1000, true);
  INFO(same.detail());
  CHECK(same.outcome() == v1::CORRECT);
  CHECK(same.verification().same_bits());
  CHECK(verified_copy(1000, 1000, false).outcome() == v1::WRONG_RESULT);
  CHECK(verified_copy(1000, 999, true).outcome() == v1::WRONG_RESULT);
  CHECK(verified_copy(1000, 1001, true).outcome() == v1::WRONG_RESULT);
  CHECK(verified_copy(1000, 0, true).outcome() == v1::WRONG_RESULT);
}

TEST_CASE("a zero buffer is cleared before each launch") {
  constexpr std::int64_t kCount = 4096;
  Requests problem;
  problem.buffer("x", "i32", v1::IN, kCount, {.fill = "permutation"})
      .buffer("counts", "i32", v1::ZERO, kCount, {.rtol = 0, .atol = 0});
  const v1::Launch launch = problem.launch("count_values", 16, Requests::dim(256), {"x", "counts"}, {kCount});
  problem.reference(launch);
  DeviceWorkerProcess worker;
  const v1::DeviceReply reply = verified(worker, problem, Requests::plan({launch}));
  INFO(reply.detail());
  CHECK(reply.outcome() == v1::CORRECT);
  CHECK(reply.verification().same_bits());
}

namespace {

/// Two launches: x doubled into a scratch buffer, and `second` from there to y.
v1::LaunchPlan doubled_through_scratch(Requests& problem, std::int64_t count, const char* second) {
  problem.buffer("x", "f32", v1::IN, count)
      .buffer("scratch", "f32", v1::SCRATCH, 0)
      .buffer("y", "f32", v1::OUT, count);
  const auto launch = [&](const char* kernel, const std::vector<std::string>& buffers) {
    return problem.launch(kernel, static_cast<std::uint32_t>((count + 255) / 256), Requests::dim(256),
                          buffers, {count});
  };
  problem.reference(launch("doubled", {"x", "y"}));
  auto plan = Requests::plan({launch("double_into", {"x", "scratch"}), launch(second, {"scratch", "y"})});
  plan.mutable_launches(0)->mutable_parameters(1)->set_extent_bytes(count * 4);
  plan.mutable_launches(1)->mutable_parameters(0)->set_extent_bytes(count * 4);
  return plan;
}

}  // namespace

TEST_CASE("several launches share a scratch buffer whose size the plan tells") {
  Requests problem;
  const v1::LaunchPlan plan = doubled_through_scratch(problem, 70'000, "copy_from");
  DeviceWorkerProcess worker;
  const v1::DeviceReply reply = verified(worker, problem, plan);
  INFO(reply.detail());
  CHECK(reply.outcome() == v1::CORRECT);
}

TEST_CASE("a launch has its clusters") {
  constexpr std::int64_t kCount = 1000;
  Requests problem;
  problem.buffer("x", "f32", v1::IN, kCount).buffer("y", "f32", v1::OUT, kCount);
  problem.reference(problem.launch("doubled", 4, Requests::dim(256), {"x", "y"}, {kCount}));
  v1::Launch launch = problem.launch("doubled_in_pairs", 4, Requests::dim(256), {"x", "y"}, {kCount});
  DeviceWorkerProcess worker;
  if (worker.info().facts().cc_major() < 9) {
    return;
  }
  *launch.mutable_cluster() = Requests::dim(2);
  CHECK(verified(worker, problem, Requests::plan({launch})).outcome() == v1::CORRECT);
  *launch.mutable_cluster() = Requests::dim(4);
  CHECK(worker.ask(Requests::verify(Requests::plan({launch}))).outcome() == v1::WRONG_RESULT);
  *launch.mutable_cluster() = Requests::dim(3);
  const v1::DeviceReply refused = worker.ask(Requests::verify(Requests::plan({launch})));
  CHECK(refused.outcome() == v1::LAUNCH);
  CHECK_FALSE(refused.sticky());
}

TEST_CASE("a cooperative launch has all its blocks at a time or is refused") {
  constexpr std::int64_t kCount = 256 * 132;
  Requests problem;
  problem.buffer("x", "f32", v1::IN, kCount)
      .buffer("come", "i32", v1::ZERO, 1, {.constant = true})
      .buffer("y", "f32", v1::OUT, kCount);
  v1::Launch launch =
      problem.launch("doubled_after_all_have_come", 132, Requests::dim(256), {"x", "come", "y"}, {kCount});
  problem.reference(launch);
  launch.mutable_attributes()->set_cooperative(true);
  launch.mutable_attributes()->set_priority(-1);
  DeviceWorkerProcess worker;
  const v1::DeviceReply reply = verified(worker, problem, Requests::plan({launch}));
  INFO(reply.detail());
  CHECK(reply.outcome() == v1::CORRECT);
  *launch.mutable_grid() = Requests::dim(1 << 20);
  const v1::DeviceReply refused = worker.ask(Requests::verify(Requests::plan({launch})));
  CHECK(refused.outcome() == v1::LAUNCH);
  CHECK_FALSE(refused.sticky());
}

TEST_CASE("a dependent launch that waits reads what the launch before it wrote") {
  Requests problem;
  v1::LaunchPlan plan = doubled_through_scratch(problem, 1 << 22, "copy_after_wait");
  plan.mutable_launches(1)->mutable_attributes()->set_programmatic_stream_serialization(true);
  DeviceWorkerProcess worker;
  const v1::DeviceReply reply = verified(worker, problem, plan);
  INFO(reply.detail());
  CHECK(reply.outcome() == v1::CORRECT);
}

TEST_CASE("dynamic shared memory above 48 KB is granted and too much is a launch outcome") {
  constexpr std::int64_t kCount = 1000;
  Requests problem;
  problem.buffer("x", "f32", v1::IN, kCount).buffer("y", "f32", v1::OUT, kCount);
  problem.reference(problem.launch("doubled", 4, Requests::dim(256), {"x", "y"}, {kCount}));
  v1::Launch launch = problem.launch("doubled_through_shared", 4, Requests::dim(256), {"x", "y"}, {kCount});
  launch.set_shared_bytes(90'000);
  DeviceWorkerProcess worker;
  CHECK(verified(worker, problem, Requests::plan({launch})).outcome() == v1::CORRECT);
  launch.set_shared_bytes(900'000);
  const v1::DeviceReply refused = worker.ask(Requests::verify(Requests::plan({launch})));
  CHECK(refused.outcome() == v1::LAUNCH);
  CHECK_FALSE(refused.sticky());
}

TEST_CASE("static and dynamic shared memory that exceed 48 KB only together are granted") {
  constexpr std::int64_t kCount = 1000;
  Requests problem;
  problem.buffer("x", "f32", v1::IN, kCount).buffer("y", "f32", v1::OUT, kCount);
  problem.reference(problem.launch("doubled", 4, Requests::dim(256), {"x", "y"}, {kCount}));
  v1::Launch launch = problem.launch("doubled_through_both", 4, Requests::dim(256), {"x", "y"}, {kCount});
  launch.set_shared_bytes(40 << 10);
  DeviceWorkerProcess worker;
  const v1::DeviceReply reply = verified(worker, problem, Requests::plan({launch}));
  INFO(reply.detail());
  CHECK(reply.outcome() == v1::CORRECT);
}

TEST_CASE("a sum whose order differs from run to run has not the same bits") {
  constexpr std::int64_t kCount = 1 << 22;
  Requests problem;
  problem.buffer("x", "f32", v1::IN, kCount).buffer("sum", "f32", v1::ZERO, 1, {.rtol = 1, .atol = 1000});
  const v1::Launch launch = problem.launch("unstable_sum", 512, Requests::dim(256), {"x", "sum"}, {kCount});
  problem.reference(launch);
  DeviceWorkerProcess worker;
  const v1::DeviceReply reply = verified(worker, problem, Requests::plan({launch}));
  INFO(reply.detail());
  CHECK(reply.outcome() == v1::CORRECT);
  CHECK_FALSE(reply.verification().same_bits());
}

TEST_CASE("a cubin without the symbol or that is none is a launch outcome") {
  kernels_cubin();
  DeviceWorkerProcess worker;
  v1::DeviceRequest request = Requests::load(row_plan(row_problem(), "right"));
  request.mutable_load()->add_entry_symbols("nobody");
  const v1::DeviceReply missing = worker.ask(request);
  CHECK(missing.outcome() == v1::LAUNCH);
  CHECK_THAT(missing.detail(), Contains("nobody"));
  request.mutable_load()->set_cubin("this is no cubin");
  CHECK(worker.ask(request).outcome() == v1::LAUNCH);
}

TEST_CASE("what a cubin needs is read from the driver") {
  kernels_cubin();
  DeviceWorkerProcess worker;
  const v1::DeviceReply loaded = worker.ask(Requests::load(row_plan(row_problem(), "right")));
  REQUIRE(loaded.entries_size() == 1);
  CHECK(loaded.entries(0).entry_symbol() == "right");
  CHECK(loaded.entries(0).registers() > 0);
  CHECK(loaded.entries(0).max_threads_per_block() == 1024);
}

TEST_CASE("a plan that names no buffer of the setup is a fault of the caller") {
  DeviceWorkerProcess worker;
  const Requests problem = row_problem();
  v1::LaunchPlan plan = row_plan(problem, "right");
  REQUIRE(worker.ask(problem.prepare()).outcome() == v1::CORRECT);
  REQUIRE(worker.ask(Requests::load(plan)).outcome() == v1::CORRECT);
  plan.mutable_launches(0)->mutable_parameters(0)->set_name("z");
  const v1::DeviceReply reply = worker.ask(Requests::verify(plan));
  CHECK(reply.outcome() == v1::OUTCOME_UNSPECIFIED);
  CHECK_THAT(reply.detail(), Contains("no buffer \"z\""));
}

// What prepare says of a reference that is this kernel.
std::string vacuity_of(Requests problem, const std::string& kernel, const std::vector<std::string>& buffers,
                       std::int64_t count) {
  problem.reference(problem.launch(kernel, static_cast<std::uint32_t>(count / 256 + 1), Requests::dim(256),
                                   buffers, {count}));
  problem.problem().set_find_vacuity(true);
  DeviceWorkerProcess worker;
  const v1::DeviceReply reply = worker.ask(problem.prepare());
  INFO(reply.detail());
  CHECK(reply.outcome() == v1::CORRECT);
  return reply.vacuity();
}

Requests vector_problem(v1::Role role, bool constant = false) {
  Requests problem;
  problem.buffer("x", "f32", v1::IN, 1000).buffer("y", "f32", role, 1000, {.constant = constant});
  return problem;
}

TEST_CASE("a reference that scales by zeros makes the verification vacuous") {
  const auto role = GENERATE(v1::OUT, v1::ZERO);
  CHECK_THAT(vacuity_of(vector_problem(role), "scale_by_zeros", {"x", "y"}, 1000),
             Contains("the outputs (y) are the same for 8 different random inputs"));
}

TEST_CASE("an update in place by zeros makes the verification vacuous") {
  Requests problem;
  problem.buffer("y", "f32", v1::INOUT, 1000);
  CHECK_THAT(vacuity_of(problem, "scale_itself_by_zeros", {"y"}, 1000), Contains("(y)"));
}

TEST_CASE("outputs that the reference leaves alone make the verification vacuous") {
  const auto role = GENERATE(v1::OUT, v1::ZERO, v1::INOUT);
  CHECK_THAT(vacuity_of(vector_problem(role), "leave_alone", {"x", "y"}, 1000), Contains("(y)"));
}

TEST_CASE("an output that is marked as constant need not depend on the inputs") {
  CHECK(vacuity_of(vector_problem(v1::OUT, true), "scale_by_zeros", {"x", "y"}, 1000).empty());
}

TEST_CASE("a histogram, an index and an update in place depend on the inputs") {
  Requests counts;
  counts.buffer("x", "i32", v1::IN, 1000, {.fill = "choice", .parameters = {8, 0}})
      .buffer("counts", "i32", v1::ZERO, 8);
  CHECK(vacuity_of(counts, "count_values", {"x", "counts"}, 1000).empty());
  Requests least;
  least.buffer("x", "f32", v1::IN, 3).buffer("index", "i32", v1::OUT, 1);
  CHECK(vacuity_of(least, "find_least", {"x", "index"}, 3).empty());
  Requests sum;
  sum.buffer("y", "f32", v1::INOUT, 1000);
  CHECK(vacuity_of(sum, "add_one", {"y"}, 1000).empty());
}

}  // namespace
}  // namespace cubind::test
