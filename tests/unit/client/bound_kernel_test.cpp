// BoundKernel over a driver that records its calls.
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "base/error.hpp"
#include "tests/unit/client/bound_sample.hpp"

namespace cubind::test {

TEST_CASE("arguments are numbered in the order in which the launches first take them") {
  const BoundKernel kernel = bound_sample();
  std::vector<std::string> names;
  std::ranges::transform(kernel.arguments(), std::back_inserter(names), &Parameter::name);
  CHECK(names == std::vector<std::string>{"x", "y", "alpha", "partial"});
  CHECK(kernel.arguments()[0].extent_bytes == 1024 * 4096 * 2);
}

TEST_CASE("a launch for the dims of another problem has its grids and computed parameters") {
  const BoundKernel kernel = bound_sample();
  REQUIRE(kernel.launch(BoundDims{1000, 4096}, bound_values(), nullptr));
  REQUIRE(recorded().launches.size() == 2);
  CHECK(recorded().launches[0].function == "_Z10scale_rows");
  CHECK(recorded().launches[0].grid == Dim3{4000, 1, 1});
  CHECK(recorded().launches[0].block == Dim3{256, 1, 1});
  CHECK(recorded().launches[0].parameters[0] == 0x1000);
  CHECK(recorded().launches[0].parameters[2] == 1000);
  CHECK(static_cast<std::uint32_t>(recorded().launches[0].parameters[3]) == 0x3f000000);  // 0.5f
  CHECK(recorded().launches[1].grid == Dim3{1000, 2, 1});
  CHECK(recorded().launches[1].shared_bytes == 4096 * 4);
  CHECK(recorded().launches[1].parameters[0] == 0x2000);
  CHECK(recorded().launches[1].parameters[1] == 0x3000);
}

TEST_CASE("a launch has the cluster and the attributes of the rule and one without them has none") {
  const BoundKernel kernel = bound_sample(rule_with_attributes());
  REQUIRE(kernel.launch(BoundDims{1000, 4096}, bound_values(), nullptr));
  REQUIRE(recorded().launches.size() == 2);
  CHECK(recorded().launches[0].attributes ==
        std::vector<std::array<unsigned, 4>>{{4, 4, 1, 1}, {2, 1, 0, 0}, {6, 1, 0, 0}, {8, -3u, 0, 0}});
  CHECK(recorded().launches[1].attributes.empty());
}

TEST_CASE("dims that the rule does not cover are not launched") {
  const BoundKernel kernel = bound_sample(bound_rule({rows_problem(512)}));
  CHECK_FALSE(kernel.launch(BoundDims{256, 4096}, bound_values(), nullptr));   // another bucket
  CHECK_FALSE(kernel.launch(BoundDims{2001, 4096}, bound_values(), nullptr));  // another bucket
  CHECK_FALSE(kernel.launch(BoundDims{1000, 2048}, bound_values(), nullptr));  // D has no interval
  CHECK_FALSE(kernel.launch(BoundDims{512, 4096}, bound_values(), nullptr));   // a record of its own
  CHECK_FALSE(kernel.launch(BoundDims{300, 4096}, bound_values(), nullptr));   // a constraint
  CHECK_FALSE(kernel.prepare(BoundDims{300, 4096}));
  CHECK(recorded().launches.empty());
}

TEST_CASE("the extents of other dims are computed without a launch") {
  std::array<std::uint64_t, 4> extents{};
  REQUIRE(bound_sample().extents(BoundDims{1000, 4096}, extents));
  CHECK(extents == std::array<std::uint64_t, 4>{1000 * 4096 * 2, 1000 * 4096 * 2, 0, 4000});
  CHECK_FALSE(bound_sample().extents(BoundDims{300, 4096}, extents));
}

TEST_CASE("a wrong argument is refused by name before anything is launched") {
  const BoundKernel kernel = bound_sample();
  BoundValues wrong = bound_values();
  wrong[3] = cuda::DevicePtr{0x3004};  // of the second launch
  CHECK_THROWS_WITH(kernel.launch(BoundDims{1000, 4096}, wrong, nullptr),
                    Catch::Contains("argument partial"));
  wrong[3] = cuda::DevicePtr{0};
  CHECK_THROWS_WITH(kernel.launch(BoundDims{1000, 4096}, wrong, nullptr),
                    Catch::Contains("expected 4000 bytes"));
  wrong[3] = ArgumentValue();
  CHECK_THROWS_WITH(kernel.launch(BoundDims{1000, 4096}, wrong, nullptr), Catch::Contains("is missing"));
  CHECK_THROWS_WITH(kernel.launch(BoundDims{1000, 4096}, std::span<const ArgumentValue>(), nullptr),
                    Catch::Contains("0 are given, scale takes 4"));
  CHECK(recorded().launches.empty());
}

TEST_CASE("a prepared launch repeats its problem with other arguments") {
  const BoundKernel kernel = bound_sample();
  const std::optional<PreparedLaunch> prepared = kernel.prepare(BoundDims{1000, 4096});
  REQUIRE(prepared);
  prepared->launch(bound_values(), nullptr);
  BoundValues other = bound_values();
  other[0] = cuda::DevicePtr{0x8000};
  prepared->launch(other, nullptr);
  REQUIRE(recorded().launches.size() == 4);
  CHECK(recorded().launches[2].grid == Dim3{4000, 1, 1});
  CHECK(recorded().launches[2].parameters[0] == 0x8000);
}

TEST_CASE("more dynamic shared memory is asked of the driver once") {
  const BoundKernel kernel = bound_sample();
  kernel.launch(BoundDims{1000, 4096}, bound_values(), nullptr);
  kernel.launch(BoundDims{1001, 4096}, bound_values(), nullptr);
  CHECK(recorded().granted == std::vector{4096 * 4});
}

namespace {

// x, y, alpha, filter, partial
std::array<ArgumentValue, 5> values_with_filter(cuda::DevicePtr filter) {
  return {cuda::DevicePtr{0x1000}, cuda::DevicePtr{0x2000}, 0.5, filter, cuda::DevicePtr{0x3000}};
}

}  // namespace

TEST_CASE("the content of a variable is an argument that is copied before its launch") {
  const BoundKernel kernel = bound_sample(rule_with_variables());
  REQUIRE(kernel.arguments().size() == 5);  // the counter is none
  CHECK(kernel.arguments()[3].name == "filter");
  CHECK(kernel.arguments()[3].source == ParameterSource::Buffer);
  CHECK(kernel.arguments()[3].extent_bytes == 16 * 1024);
  REQUIRE(kernel.launch(BoundDims{1000, 4096}, values_with_filter(0x4000), nullptr));
  REQUIRE(recorded().launches.size() == 2);
  CHECK(recorded().copies == std::vector<RecordedCopy>{{kVariable, 0x4000, 16'000, 1}});
  CHECK(recorded().launches[1].parameters[0] == 0x2000);  // y is the kernel's first parameter
}

TEST_CASE("the content of a variable is checked before anything is copied or launched") {
  const BoundKernel kernel = bound_sample(rule_with_variables());
  const auto launch = [&](std::int64_t n, cuda::DevicePtr filter) {
    kernel.launch(BoundDims{n, 4096}, values_with_filter(filter), nullptr);
  };
  CHECK_THROWS_WITH(launch(1000, 0), Catch::Contains("argument filter: the pointer is null"));
  CHECK_THROWS_WITH(launch(1000, 0x4004), Catch::Contains("argument filter: the pointer is aligned to 4"));
  CHECK_THROWS_WITH(launch(1025, 0x4000),
                    "argument filter: has 16400 bytes, the variable d_filter holds 16384");
  CHECK(recorded().copies.empty());
  CHECK(recorded().launches.empty());
}

TEST_CASE("a tensor map is encoded for the caller's buffer and the dims of the launch") {
  const BoundKernel kernel = bound_sample(rule_with_tensor_maps());
  CHECK(kernel.arguments().size() == 4);  // x, y, alpha, partial as without maps
  REQUIRE(kernel.launch(BoundDims{1000, 4096}, bound_values(), nullptr));
  REQUIRE(recorded().maps.size() == 2);
  CHECK(recorded().maps[0] == RecordedMap{0x1000, 6, {4096, 1000}, {8192}, {64, 8}, {1, 1}, {0, 3, 3, 0}});
  CHECK(recorded().maps[1].base == 0x2000);
  REQUIRE(recorded().launches.size() == 2);
  CHECK(recorded().launches[0].parameters[0] == 0x1000);  // of the descriptor, where the kernel finds it
  CHECK(recorded().launches[0].parameters[1] == 0x2000);  // y is a pointer here
  CHECK(recorded().launches[1].parameters[0] == 0x2000);
}

TEST_CASE("a prepared launch encodes its tensor maps again only for other buffers") {
  const auto prepared = bound_sample(rule_with_tensor_maps()).prepare(BoundDims{1000, 4096}).value();
  BoundValues values = bound_values();
  prepared.launch(values, nullptr);
  values[3] = cuda::DevicePtr{0x4000};  // which has no map
  prepared.launch(values, nullptr);
  CHECK(recorded().maps.size() == 2);
  values[0] = cuda::DevicePtr{0x8000};
  prepared.launch(values, nullptr);
  CHECK(recorded().maps.size() == 4);
  CHECK(recorded().launches[4].parameters[0] == 0x8000);
}

TEST_CASE("a tensor map has the strides of the caller's scalars and is encoded again for other ones") {
  const BoundKernel kernel = bound_sample(rule_with_strides());
  const auto prepared = kernel.prepare(BoundDims{1000, 4096}).value();
  BoundValues values = bound_values();
  const auto strides = [&](std::int64_t row, std::size_t encoded) {
    values[2] = row;
    prepared.launch(values, nullptr);
    REQUIRE(recorded().maps.size() == encoded);
    return recorded().maps[encoded - 2].strides;
  };
  CHECK(strides(0, 2) == std::vector<std::uint64_t>{8192});
  CHECK(strides(12288, 4) == std::vector<std::uint64_t>{24576});
  CHECK(strides(12288, 4) == std::vector<std::uint64_t>{24576});
  CHECK(strides(0, 6) == std::vector<std::uint64_t>{8192});
  values[2] = std::int64_t{5120};
  REQUIRE(kernel.launch(BoundDims{1000, 4096}, values, nullptr));
  CHECK(recorded().maps[6].strides == std::vector<std::uint64_t>{10240});
}

TEST_CASE("a prepared launch that a graph holds refuses other buffers below its tensor maps") {
  const auto prepared = bound_sample(rule_with_tensor_maps()).prepare(BoundDims{1000, 4096}).value();
  BoundValues values = bound_values();
  prepared.launch(values, nullptr);
  CHECK(prepared.captured().empty());
  recorded().capturing = true;
  prepared.launch(values, nullptr);
  recorded().capturing = false;
  CHECK(prepared.captured() == std::vector<CapturedBuffer>{{0, 0x1000}, {1, 0x2000}});
  prepared.launch(values, nullptr);
  const std::size_t before = recorded().launches.size();
  values[1] = cuda::DevicePtr{0x8000};
  CHECK_THROWS_WITH(
      prepared.launch(values, nullptr),
      "argument y: 0x8000 was given, and a CUDA graph holds the tensor map of 0x2000, which it was "
      "captured with: prepare another launch for other buffers");
  CHECK(recorded().launches.size() == before);
  prepared.launch(values, nullptr, AfterCapture::AnyBuffers);
  CHECK(recorded().launches.back().parameters[0] == 0x8000);
  CHECK(prepared.captured()[1].pointer == 0x2000);
}

TEST_CASE("a tensor map that the driver does not encode is named with its numbers and nothing is launched") {
  const BoundKernel kernel = bound_sample([] {
    PlanTemplate plan = rule_with_tensor_maps()->program().plan_template();
    plan.launches[1].parameters[0].tensor_map.type = TensorMapType::F64;
    plan.launches[1].parameters[0].tensor_map.sizes = {"D / 4", "N"};
    plan.launches[1].parameters[0].tensor_map.box = {"16", "8"};
    return sample_rule(std::move(plan));
  }());
  CHECK_THROWS_WITH(kernel.launch(BoundDims{1000, 4096}, bound_values(), nullptr),
                    Catch::Contains("encoding the tensor map y_map of y: f64 [1024, 1000], strides [8192]"));
  CHECK(recorded().launches.empty());
}

TEST_CASE("threads launch through one kernel at once") {
  const BoundKernel kernel = bound_sample();
  recorded().launching = false;
  std::vector<std::thread> threads;
  std::atomic<int> covered = 0;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (std::int64_t n = 400; n < 1024; ++n) {
        covered += kernel.launch(BoundDims{n, 4096}, bound_values(), nullptr) ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  recorded().launching = true;
  CHECK(covered == 4 * (1024 - 400));
}

}  // namespace cubind::test
