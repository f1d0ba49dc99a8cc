#include <catch2/catch.hpp>

#include "tests/gpu/device_worker/device_worker_process.hpp"
#include "tests/gpu/device_worker/requests.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;

v1::OutputParts first_of_y(std::int64_t elements) {
  v1::OutputParts parts;
  parts.add_parts()->set_output("y");
  parts.mutable_parts(0)->set_elements(static_cast<std::uint64_t>(elements));
  return parts;
}

// The hashes of the first rows of y, in a problem of `rows` rows.
std::vector<std::uint64_t> row_hashes(const std::string& kernel, std::int64_t rows,
                                      const std::vector<std::int64_t>& first, const BufferOptions& x = {}) {
  const auto elements = static_cast<std::uint64_t>(rows * kColumns);
  Requests problem;
  problem.buffer("x", "f32", v1::IN, elements, x)
      .buffer("w", "f32", v1::IN, kColumns)
      .buffer("y", "f32", v1::OUT, elements);
  problem.reference(problem.launch("reference", static_cast<std::uint32_t>(rows), Requests::dim(256),
                                   {"x", "w", "y"}, {rows, kColumns}));
  const auto plan =
      Requests::plan({problem.launch(kernel, static_cast<std::uint32_t>((rows + 3) / 4),
                                     Requests::dim(kColumns, 4), {"x", "w", "y"}, {rows, kColumns})});
  DeviceWorkerProcess worker;
  REQUIRE(worker.ask(problem.prepare()).outcome() == v1::CORRECT);
  REQUIRE(worker.ask(Requests::load(plan)).outcome() == v1::CORRECT);
  v1::DeviceRequest request = Requests::verify(plan);
  for (const std::int64_t count : first) {
    *request.mutable_verify()->add_hashed() = first_of_y(count * kColumns);
  }
  const v1::DeviceReply reply = worker.ask(request);
  INFO(reply.detail());
  REQUIRE(reply.outcome() == v1::CORRECT);
  return {reply.hashes().begin(), reply.hashes().end()};
}

TEST_CASE("the first rows of a larger problem have the inputs and the bits of a smaller one") {
  const BufferOptions fill =
      GENERATE(BufferOptions{.fill = "normal"}, BufferOptions{.fill = "uniform", .parameters = {-1, 1}},
               BufferOptions{.fill = "constant", .parameters = {3}},
               BufferOptions{.fill = "iota", .parameters = {0, 2}},
               BufferOptions{.fill = "choice", .parameters = {100, 1.1}});
  INFO(fill.fill);
  const auto large = row_hashes("right", 33, {33, 7, 1}, fill);
  CHECK(large[1] == row_hashes("right", 7, {7}, fill)[0]);
  CHECK(large[2] == row_hashes("right", 1, {1}, fill)[0]);
  CHECK(large[0] != large[1]);
}

TEST_CASE("a kernel whose bits depend on the size is correct and has other rows") {
  CHECK(row_hashes("bits_of_the_size", 33, {33}) == row_hashes("right", 33, {33}));
  CHECK(row_hashes("bits_of_the_size", 33, {7})[0] != row_hashes("bits_of_the_size", 7, {7})[0]);
}

TEST_CASE("a part that is longer than its output or of an input is a fault of the caller") {
  const auto [output, elements] =
      GENERATE(std::pair{"y", kRows * kColumns + 1}, std::pair{"x", std::int64_t{1}});
  DeviceWorkerProcess worker;
  const Requests problem = row_problem();
  const v1::LaunchPlan plan = row_plan(problem, "right");
  REQUIRE(worker.ask(problem.prepare()).outcome() == v1::CORRECT);
  REQUIRE(worker.ask(Requests::load(plan)).outcome() == v1::CORRECT);
  v1::DeviceRequest request = Requests::verify(plan);
  *request.mutable_verify()->add_hashed() = first_of_y(elements);
  request.mutable_verify()->mutable_hashed(0)->mutable_parts(0)->set_output(output);
  const v1::DeviceReply reply = worker.ask(request);
  CHECK(reply.outcome() == v1::OUTCOME_UNSPECIFIED);
  CHECK_THAT(reply.detail(), Contains("not part of an output"));
}

}  // namespace
}  // namespace cubind::test
