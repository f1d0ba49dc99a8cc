// BoundKernel over a driver that records its calls.
#include "client/bound_kernel.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>

#include "base/error.hpp"
#include "tests/fakes/sample_reply.hpp"

namespace {

thread_local std::size_t allocations = 0;

}  // namespace

// Counted, so that a test can tell whether a launch allocates.
void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) {
    return memory;
  }
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace cubind {
namespace {

struct RecordedLaunch {
  std::string function;
  Dim3 grid, block;
  unsigned shared_bytes = 0;
  std::array<std::uint64_t, 4> parameters{};
};

bool recording = true;
std::vector<RecordedLaunch> launches;
std::vector<int> granted;
const char* const kFunctions[] = {"_Z10scale_rows", "_Z6finish"};
constexpr std::size_t kParameters[] = {4, 3};

cuda::Result record_launch(cuda::Function function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                           unsigned by, unsigned bz, unsigned shared, cuda::Stream, void** parameters,
                           void**) {
  if (!recording) {
    return cuda::Result::Success;
  }
  const auto index = reinterpret_cast<std::uintptr_t>(function) - 1;
  RecordedLaunch launch{kFunctions[index], {gx, gy, gz}, {bx, by, bz}, shared, {}};
  for (std::size_t i = 0; i < kParameters[index]; ++i) {
    std::memcpy(&launch.parameters[i], parameters[i], 8);  // ParameterBytes has 8
  }
  launches.push_back(launch);
  return cuda::Result::Success;
}

std::shared_ptr<cuda::DriverApi> recording_driver() {
  launches.clear();
  granted.clear();
  auto api = std::make_shared<cuda::DriverApi>();
  api->init = [](unsigned) { return cuda::Result::Success; };
  api->device_get_count = [](int* count) { return *count = 1, cuda::Result::Success; };
  api->device_get = [](cuda::DeviceOrdinal* device, int) { return *device = 0, cuda::Result::Success; };
  api->ctx_get_current = [](cuda::Context* context) {
    *context = reinterpret_cast<cuda::Context>(1);
    return cuda::Result::Success;
  };
  api->module_load_data = [](cuda::Module*, const void*) { return cuda::Result::Success; };
  api->module_unload = [](cuda::Module) { return cuda::Result::Success; };
  api->module_get_function = [](cuda::Function* function, cuda::Module, const char* name) {
    const auto found = std::ranges::find(kFunctions, std::string_view(name));
    const auto number = found - std::begin(kFunctions) + 1;
    *function = reinterpret_cast<cuda::Function>(number);  // NOLINT: never dereferenced
    return cuda::Result::Success;
  };
  api->func_get_attribute = [](int* value, cuda::FunctionAttribute, cuda::Function) {
    return *value = 8192, cuda::Result::Success;
  };
  api->func_set_attribute = [](cuda::Function, cuda::FunctionAttribute, int value) {
    granted.push_back(value);
    return cuda::Result::Success;
  };
  api->launch_kernel = record_launch;
  api->get_error_name = [](cuda::Result, const char** text) { return *text = "NAME", cuda::Result::Success; };
  api->get_error_string = api->get_error_name;
  return api;
}

Problem rows_problem(std::int64_t n) { return {{{"N", n}, {"D", 4096}}, {{"T", DType::F16}}, {}, ""}; }

std::shared_ptr<const Rule> bound_rule(std::vector<Problem> own_records = {}) {
  return std::make_shared<const Rule>(RuleParts{"scale",
                                                rows_problem(1024),
                                                test::sample_configuration(),
                                                {{"N", 257, 1024}},
                                                std::move(own_records),
                                                test::sample_template(),
                                                {132, 232448, 0, 90}});
}

BoundKernel bound_sample(std::shared_ptr<const Rule> rule = bound_rule()) {
  auto module =
      std::make_shared<CubinModule>(recording_driver(), "cubin", BoundKernel::symbols(*rule), "scale");
  return {std::move(rule), std::move(module)};
}

using Dims = std::array<std::int64_t, 2>;
using Values = std::array<ArgumentValue, 4>;

// x, y, alpha, partial
Values values() { return {cuda::DevicePtr{0x1000}, cuda::DevicePtr{0x2000}, 0.5, cuda::DevicePtr{0x3000}}; }

}  // namespace

TEST_CASE("arguments are numbered in the order in which the launches first take them") {
  const BoundKernel kernel = bound_sample();
  std::vector<std::string> names;
  std::ranges::transform(kernel.arguments(), std::back_inserter(names), &Parameter::name);
  CHECK(names == std::vector<std::string>{"x", "y", "alpha", "partial"});
  CHECK(kernel.arguments()[0].extent_bytes == 1024 * 4096 * 2);
}

TEST_CASE("a launch for the dims of another problem has its grids and computed parameters") {
  const BoundKernel kernel = bound_sample();
  REQUIRE(kernel.launch(Dims{1000, 4096}, values(), nullptr));
  REQUIRE(launches.size() == 2);
  CHECK(launches[0].function == "_Z10scale_rows");
  CHECK(launches[0].grid == Dim3{4000, 1, 1});
  CHECK(launches[0].block == Dim3{256, 1, 1});
  CHECK(launches[0].parameters[0] == 0x1000);
  CHECK(launches[0].parameters[2] == 1000);
  CHECK(static_cast<std::uint32_t>(launches[0].parameters[3]) == 0x3f000000);  // 0.5f
  CHECK(launches[1].grid == Dim3{1000, 2, 1});
  CHECK(launches[1].shared_bytes == 4096 * 4);
  CHECK(launches[1].parameters[0] == 0x2000);
  CHECK(launches[1].parameters[1] == 0x3000);
}

TEST_CASE("dims that the rule does not cover are not launched") {
  const BoundKernel kernel = bound_sample(bound_rule({rows_problem(512)}));
  CHECK_FALSE(kernel.launch(Dims{256, 4096}, values(), nullptr));   // another bucket
  CHECK_FALSE(kernel.launch(Dims{1025, 4096}, values(), nullptr));  // another bucket
  CHECK_FALSE(kernel.launch(Dims{1000, 2048}, values(), nullptr));  // D has no interval
  CHECK_FALSE(kernel.launch(Dims{512, 4096}, values(), nullptr));   // a record of its own
  CHECK_FALSE(kernel.launch(Dims{300, 4096}, values(), nullptr));   // a constraint
  CHECK_FALSE(kernel.prepare(Dims{300, 4096}));
  CHECK(launches.empty());
}

TEST_CASE("the extents of other dims are told without a launch") {
  std::array<std::uint64_t, 4> extents{};
  REQUIRE(bound_sample().extents(Dims{1000, 4096}, extents));
  CHECK(extents == std::array<std::uint64_t, 4>{1000 * 4096 * 2, 1000 * 4096 * 2, 0, 4000});
  CHECK_FALSE(bound_sample().extents(Dims{300, 4096}, extents));
}

TEST_CASE("a wrong argument is refused by name before anything is launched") {
  const BoundKernel kernel = bound_sample();
  Values wrong = values();
  wrong[3] = cuda::DevicePtr{0x3004};  // of the second launch
  CHECK_THROWS_WITH(kernel.launch(Dims{1000, 4096}, wrong, nullptr), Catch::Contains("argument partial"));
  wrong[3] = cuda::DevicePtr{0};
  CHECK_THROWS_WITH(kernel.launch(Dims{1000, 4096}, wrong, nullptr), Catch::Contains("expected 4000 bytes"));
  wrong[3] = ArgumentValue();
  CHECK_THROWS_WITH(kernel.launch(Dims{1000, 4096}, wrong, nullptr), Catch::Contains("is missing"));
  CHECK_THROWS_WITH(kernel.launch(Dims{1000, 4096}, std::span<const ArgumentValue>(), nullptr),
                    Catch::Contains("0 are given, scale takes 4"));
  CHECK(launches.empty());
}

TEST_CASE("a prepared launch repeats its problem with other arguments") {
  const BoundKernel kernel = bound_sample();
  const std::optional<PreparedLaunch> prepared = kernel.prepare(Dims{1000, 4096});
  REQUIRE(prepared);
  prepared->launch(values(), nullptr);
  Values other = values();
  other[0] = cuda::DevicePtr{0x8000};
  prepared->launch(other, nullptr);
  REQUIRE(launches.size() == 4);
  CHECK(launches[2].grid == Dim3{4000, 1, 1});
  CHECK(launches[2].parameters[0] == 0x8000);
}

TEST_CASE("more dynamic shared memory is asked of the driver once") {
  const BoundKernel kernel = bound_sample();
  kernel.launch(Dims{1000, 4096}, values(), nullptr);
  kernel.launch(Dims{1001, 4096}, values(), nullptr);
  CHECK(granted == std::vector{4096 * 4});
}

TEST_CASE("a launch allocates nothing") {
  const BoundKernel kernel = bound_sample();
  const std::optional<PreparedLaunch> prepared = kernel.prepare(Dims{1000, 4096});
  const Values given = values();
  recording = false;
  const std::size_t before = allocations;
  for (std::int64_t n = 400; n < 1024; ++n) {
    kernel.launch(Dims{n, 4096}, given, nullptr);
  }
  prepared->launch(given, nullptr);
  const std::size_t after = allocations;
  recording = true;
  CHECK(after == before);
}

TEST_CASE("threads launch through one kernel at once") {
  const BoundKernel kernel = bound_sample();
  recording = false;
  std::vector<std::thread> threads;
  std::atomic<int> covered = 0;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (std::int64_t n = 400; n < 1024; ++n) {
        covered += kernel.launch(Dims{n, 4096}, values(), nullptr) ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  recording = true;
  CHECK(covered == 4 * (1024 - 400));
}

}  // namespace cubind
