// Inputs are generated on the device; a kernel says what they are.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "base/unique_fd.hpp"
#include "tests/gpu/device_worker/device_worker_process.hpp"
#include "tests/gpu/device_worker/requests.hpp"
#include "tuner/worker/fill.hpp"

namespace cubind::test {
namespace {

constexpr std::int64_t kCount = 1 << 20;

std::string doubles(const std::vector<double>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double)};
}

std::string ints(const std::vector<std::int32_t>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(std::int32_t)};
}

// Whether sum and sum of squares of the fill are as expected, within a tolerance.
v1::DeviceReply moments(const BufferOptions& fill, double sum, double squares, double tolerance) {
  Requests problem;
  problem.buffer("x", "f32", v1::IN, kCount, fill)
      .buffer("sums", "f64", v1::ZERO, 2, {.rtol = 0, .atol = tolerance})
      .expected("sums", "f64", doubles({sum, squares}));
  const auto plan =
      Requests::plan({problem.launch("moments", 1, Requests::dim(1024), {"x", "sums"}, {kCount})});
  DeviceWorkerProcess worker;
  REQUIRE(worker.ask(problem.prepare()).outcome() == v1::CORRECT);
  REQUIRE(worker.ask(Requests::load(plan)).outcome() == v1::CORRECT);
  return worker.ask(Requests::verify(plan, 1, false));
}

v1::DeviceReply counted(const BufferOptions& fill, std::int64_t elements,
                        const std::vector<std::int32_t>& counts, double tolerance) {
  Requests problem;
  problem.buffer("x", "i32", v1::IN, static_cast<std::uint64_t>(elements), fill)
      .buffer("counts", "i32", v1::ZERO, counts.size(), {.rtol = 0, .atol = tolerance})
      .expected("counts", "i32", ints(counts));
  const auto plan =
      Requests::plan({problem.launch("count_values", static_cast<std::uint32_t>(elements / 256 + 1),
                                     Requests::dim(256), {"x", "counts"}, {elements})});
  DeviceWorkerProcess worker;
  REQUIRE(worker.ask(problem.prepare()).outcome() == v1::CORRECT);
  REQUIRE(worker.ask(Requests::load(plan)).outcome() == v1::CORRECT);
  return worker.ask(Requests::verify(plan));
}

TEST_CASE("a normal fill has its mean and its deviation") {
  // Six standard errors.
  const v1::DeviceReply reply = moments({}, 0, kCount, 6 * 1.5 * 1024);
  INFO(reply.detail());
  CHECK(reply.outcome() == v1::CORRECT);
}

TEST_CASE("a uniform fill has its mean and its spread") {
  const v1::DeviceReply reply =
      moments({.fill = "uniform", .parameters = {0, 2}}, kCount, kCount * 4.0 / 3, 6 * 1.3 * 1024);
  INFO(reply.detail());
  CHECK(reply.outcome() == v1::CORRECT);
}

TEST_CASE("constant and iota fills are what they say") {
  CHECK(moments({.fill = "constant", .parameters = {0.5}}, kCount * 0.5, kCount * 0.25, 1e-3).outcome() ==
        v1::CORRECT);
  const double n = kCount;
  CHECK(moments({.fill = "iota", .parameters = {0, 0.0009765625}}, n * (n - 1) / 2 / 1024,
                (n - 1) * n * (2 * n - 1) / 6 / 1024 / 1024, 1e3)
            .outcome() == v1::CORRECT);
}

TEST_CASE("a permutation has each number once") {
  const std::int64_t elements = GENERATE(1, 2, 1000, 4097, 65536);
  const v1::DeviceReply reply = counted({.fill = "permutation"}, elements,
                                        std::vector<std::int32_t>(static_cast<std::size_t>(elements), 1), 0);
  INFO(elements << " " << reply.detail());
  CHECK(reply.outcome() == v1::CORRECT);
}

TEST_CASE("a Zipf choice has its weights") {
  const auto cumulative = worker::zipf_distribution(8, 1.2);
  std::vector<std::int32_t> counts;
  for (std::size_t k = 0; k < cumulative.size(); ++k) {
    counts.push_back(static_cast<std::int32_t>(kCount * (cumulative[k] - (k == 0 ? 0 : cumulative[k - 1]))));
  }
  const v1::DeviceReply reply = counted({.fill = "choice", .parameters = {8, 1.2}}, kCount, counts, 6 * 512);
  INFO(reply.detail());
  CHECK(reply.outcome() == v1::CORRECT);
}

TEST_CASE("offsets reach the device as the host makes them") {
  const auto offsets = worker::make_offsets(1025, 1 << 20, worker::mix_seeds(1, 0));
  Requests problem;
  problem.buffer("x", "i32", v1::IN, 1025, {.fill = "offsets", .parameters = {1 << 20}})
      .buffer("y", "i32", v1::OUT, 1025, {.rtol = 0, .atol = 0})
      .expected("y", "i32", ints(std::vector<std::int32_t>(offsets.begin(), offsets.end())));
  const auto plan =
      Requests::plan({problem.launch("copy_bytes", 17, Requests::dim(256), {"x", "y"}, {4100})});
  DeviceWorkerProcess worker;
  REQUIRE(worker.ask(problem.prepare()).outcome() == v1::CORRECT);
  REQUIRE(worker.ask(Requests::load(plan)).outcome() == v1::CORRECT);
  CHECK(worker.ask(Requests::verify(plan)).outcome() == v1::CORRECT);
}

TEST_CASE("an array of another process is uploaded once") {
  UniqueFd memory(::memfd_create("cubind-array", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const std::string content = ints(std::vector<std::int32_t>(kCount, 3));
  REQUIRE(::write(memory.get(), content.data(), content.size()) == std::ssize(content));
  REQUIRE(::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW) == 0);
  Requests problem;
  problem.buffer("x", "i32", v1::IN, kCount, {.fill = "file"})
      .buffer("counts", "i32", v1::ZERO, 4, {.rtol = 0, .atol = 0})
      .expected("counts", "i32", ints({0, 0, 0, kCount}));
  v1::FillSpec& fill = *problem.problem().mutable_buffers(0)->mutable_fill();
  fill.clear_file_content();
  fill.set_memory("/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(memory.get()));
  fill.set_memory_name("cubind-array");
  const auto plan = Requests::plan(
      {problem.launch("count_values", kCount / 256 + 1, Requests::dim(256), {"x", "counts"}, {kCount})});
  DeviceWorkerProcess worker;
  REQUIRE(worker.ask(problem.prepare()).outcome() == v1::CORRECT);
  REQUIRE(worker.ask(Requests::load(plan)).outcome() == v1::CORRECT);
  REQUIRE(worker.ask(Requests::verify(plan)).outcome() == v1::CORRECT);
  memory = UniqueFd();
  CHECK(worker.ask(Requests::measure(plan, 2)).outcome() == v1::CORRECT);
  const v1::DeviceReply again = worker.ask(Requests::verify(plan));
  INFO(again.detail());
  CHECK(again.outcome() == v1::CORRECT);
}

}  // namespace
}  // namespace cubind::test
