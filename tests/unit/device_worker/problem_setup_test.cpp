#include "tuner/worker/problem_setup.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <cmath>
#include <set>
#include <vector>

#include "tests/unit/device_worker/host_driver.hpp"
#include "tuner/verify/setup_memory.hpp"

namespace cubind::worker {
namespace {

constexpr std::uint64_t kBytes = std::uint64_t{256} << 10;
constexpr std::uint64_t kPlenty = std::uint64_t{64} << 20;
constexpr std::uint64_t kEnoughForSlots = std::uint64_t{256} << 20;
constexpr std::uint64_t kEnoughForOne = 4 * kBytes + (std::uint64_t{3} << 20);

v1::BufferSpec buffer_spec(const std::string& name, v1::Role role) {
  v1::BufferSpec buffer;
  buffer.set_name(name);
  buffer.set_type("u8");
  buffer.set_role(role);
  buffer.set_elements(kBytes);
  buffer.set_align_bytes(16);
  buffer.mutable_fill()->set_kind("uniform");
  buffer.mutable_fill()->add_parameters(0);
  buffer.mutable_fill()->add_parameters(9);
  return buffer;
}

// A problem y = f(x, w) whose kernels do nothing.
struct SetupOnHost {
  explicit SetupOnHost(std::uint64_t limit = kPlenty, v1::Role second = v1::IN)
      : context("", test::make_host_driver()), budget(context.api(), limit), kernels(context, budget) {
    v1::PrepareProblem request;
    request.set_reference("kernel");
    *request.add_buffers() = buffer_spec("x", v1::IN);
    *request.add_buffers() = buffer_spec("w", second);
    *request.add_buffers() = buffer_spec("y", v1::OUT);
    setup.emplace(context, budget, kernels, request);
  }
  /// Of both inputs together, while `work` runs.
  template <typename Work>
  int fills(Work work) {
    const auto count = [] {
      const auto found = test::launched().find("cubind_fill");
      return found == test::launched().end() ? 0 : found->second;
    };
    const int before = count();
    work();
    return count() - before;
  }
  /// One trial after the other: timed, verified, timed again.
  int fills_of_trials(int trials) {
    return fills([&] {
      for (int i = 0; i < trials; ++i) {
        setup->prepare_timing();
        setup->prepare_verification(1);
        setup->prepare_timing();
      }
    });
  }
  /// Moves on; absent: the inputs are there.
  std::optional<std::string> damage_at_next_slot() {
    setup->next_slot();
    return setup->find_damage();
  }
  static unsigned char* at(cuda::DevicePtr address) {
    return reinterpret_cast<unsigned char*>(address);  // NOLINT: the host's memory
  }
  static void overwrite(cuda::DevicePtr address) { *at(address) ^= 1; }

  DriverContext context;
  MemoryBudget budget;
  OwnKernels kernels;
  std::optional<ProblemSetup> setup;
};

TEST_CASE("a buffer without elements is passed as null") {
  DriverContext context("", test::make_host_driver());
  MemoryBudget budget(context.api(), kPlenty);
  OwnKernels kernels(context, budget);
  v1::PrepareProblem request;
  request.set_reference("kernel");
  for (const char* name : {"bias", "y"}) {
    *request.add_buffers() = buffer_spec(name, name == std::string("y") ? v1::OUT : v1::IN);
  }
  request.mutable_buffers(0)->set_elements(0);
  ProblemSetup setup(context, budget, kernels, request);
  const LoadedModule module(context.api(), "cubin", {"two_pointers"}, "a test");
  Launch launch{"two_pointers", "two_pointers", {}, {}, 0, {}};
  launch.parameters = {{"bias", ParameterSource::Buffer, DType::U8, Role::In, 0, 16, 0},
                       {"y", ParameterSource::Buffer, DType::U8, Role::Out, kBytes, 16, 0}};
  setup.prepare_verification(0);
  setup.bind(module, {{launch}}).enqueue(context.stream());
  CHECK(test::last_pointers()[0] == 0);
  CHECK(test::last_pointers()[1] != 0);
}

TEST_CASE("inputs for verifying and for timing are made once where there is memory for both") {
  SetupOnHost host;
  host.setup->prepare_verification(0);
  CHECK(host.fills_of_trials(1) == 4);
  CHECK(host.fills_of_trials(3) == 0);
}

TEST_CASE("where memory is short the inputs are made again at each turn") {
  SetupOnHost host(kEnoughForOne);
  const std::uint64_t taken = host.budget.taken_bytes();
  host.setup->prepare_verification(0);
  CHECK(host.fills_of_trials(3) == 6 + 4 + 4);
  CHECK(host.budget.taken_bytes() < taken + (2 << 20));
}

TEST_CASE("an inout buffer is restored from one copy and its problem has all inputs made again") {
  SetupOnHost host(kPlenty, v1::INOUT);
  host.fills_of_trials(1);
  CHECK(host.fills_of_trials(1) == 4);
}

TEST_CASE(
    "kept inputs that a run with the others has changed are made again and no configuration is blamed") {
  SetupOnHost host;
  host.setup->prepare_timing();
  const cuda::DevicePtr timed = test::last_filled();
  host.setup->prepare_verification(1);
  SetupOnHost::overwrite(timed);
  CHECK(host.fills([&] { host.setup->prepare_timing(); }) == 2);
  host.setup->poison(verify::kFirstPoison);
  CHECK_FALSE(host.setup->find_damage());
}

TEST_CASE("an input that a run has changed is named at either placement") {
  SetupOnHost host;
  if (GENERATE(false, true)) {
    host.setup->prepare_timing();
  }
  host.setup->prepare_verification(1);
  host.setup->poison(verify::kFirstPoison);
  CHECK_FALSE(host.setup->find_damage());
  SetupOnHost::overwrite(test::last_filled());
  CHECK(host.setup->find_damage() == "w: the input was overwritten");
}

TEST_CASE("a byte behind a buffer is reported with the buffer's name") {
  SetupOnHost host;
  host.setup->prepare_verification(1);
  host.setup->poison(verify::kFirstPoison);
  SetupOnHost::overwrite(test::last_filled() + kBytes);
  const auto damage = host.setup->find_damage();
  REQUIRE(damage);
  CHECK(damage->starts_with("w: 1 byte"));
}

TEST_CASE("after a wrong result the inputs of both placements are made again") {
  SetupOnHost host;
  host.fills_of_trials(1);
  host.setup->distrust();
  CHECK(host.fills_of_trials(1) == 4);
}

TEST_CASE("samples take turns among 61 slots that all have the inputs") {
  SetupOnHost host(kEnoughForSlots);
  const std::uint64_t taken = host.budget.taken_bytes();
  host.setup->prepare_timing();
  CHECK(host.budget.taken_bytes() - taken >= 60 * verify::slot_bytes(host.setup->request()));
  std::set<cuda::DevicePtr> slots;
  for (int sample = 0; sample < 122; ++sample) {
    CHECK_FALSE(host.damage_at_next_slot());
    slots.insert(test::last_hashed());
  }
  CHECK(slots.size() == 61);
}

TEST_CASE("renewed inputs differ from sample to sample until the setup's own are wanted again") {
  SetupOnHost host(GENERATE(kEnoughForSlots, kEnoughForOne));
  host.setup->prepare_timing();
  std::set<unsigned char> contents;
  for (int sample = 0; sample < 4; ++sample) {
    host.setup->next_slot();
    CHECK(host.fills([&] { host.setup->renew_inputs(7); }) == static_cast<int>(host.setup->renewals()));
    CHECK_FALSE(host.setup->find_changed_input(7));
    contents.insert(*SetupOnHost::at(test::last_filled()));
  }
  CHECK(contents.size() == 4);
  host.setup->forget_renewed();
  CHECK(host.fills([&] { host.setup->prepare_timing(); }) == 2);
  CHECK_FALSE(host.damage_at_next_slot());
}

TEST_CASE("an input that a timed sample has changed is named at whatever slot, of renewed inputs too") {
  SetupOnHost host(kEnoughForSlots);
  const std::uint64_t seed = GENERATE(0, 7);
  host.setup->prepare_timing();
  host.setup->next_slot();
  for (int sample = 0; sample < 5; ++sample) {
    host.setup->next_slot();
    if (seed != 0) {
      host.setup->renew_inputs(seed);
    }
  }
  host.setup->return_to(3);
  CHECK_FALSE(host.setup->find_changed_input(seed));
  SetupOnHost::overwrite(test::last_hashed());
  CHECK(host.setup->find_changed_input(seed) == "w: the input was overwritten");
}

TEST_CASE("a sample is returned to while its slots are its own, else the last one is") {
  SetupOnHost host(kEnoughForSlots);
  host.setup->prepare_timing();
  std::vector<cuda::DevicePtr> addresses;
  for (int sample = 0; sample < 61; ++sample) {
    host.damage_at_next_slot();
    addresses.push_back(test::last_hashed());
  }
  const auto address_at = [&](std::uint32_t back) {
    host.setup->return_to(back);
    CHECK_FALSE(host.setup->find_changed_input(0));
    return test::last_hashed();
  };
  CHECK(address_at(0) == addresses[60]);
  CHECK(address_at(12) == addresses[48]);
  host.damage_at_next_slot();
  CHECK(address_at(61) == test::last_hashed());
  CHECK(address_at(61) == address_at(0));
}

TEST_CASE("any of a round's samples may be drawn, which is the last one of fewer if there is one slot") {
  const bool one_slot = GENERATE(false, true);
  SetupOnHost host(one_slot ? kEnoughForOne : kEnoughForSlots);
  host.setup->prepare_timing();
  std::set<std::uint32_t> numbers;
  for (int round = 0; round < 100; ++round) {
    const DrawnSample drawn = host.setup->draw(12);
    CHECK(drawn.samples <= 12);
    CHECK(drawn.back < host.setup->slots());
    CHECK((drawn.samples == 12 || one_slot));
    numbers.insert(drawn.samples - drawn.back);
    host.setup->next_slot();
  }
  CHECK(numbers.size() == 12);
  CHECK(*numbers.begin() == 1);
}

TEST_CASE("a block of samples begins where the one before ended") {
  SetupOnHost host(kEnoughForSlots);
  std::set<cuda::DevicePtr> slots;
  for (int block = 0; block < 21; ++block) {
    host.setup->prepare_timing();
    for (int sample = 0; sample < 3; ++sample) {
      host.damage_at_next_slot();
      slots.insert(test::last_hashed());
    }
  }
  CHECK(slots.size() == 61);
}

TEST_CASE("after a wrong result the inputs of every slot are made again") {
  SetupOnHost host(kEnoughForSlots);
  host.setup->prepare_timing();
  CHECK_FALSE(host.damage_at_next_slot());
  SetupOnHost::overwrite(test::last_hashed());
  CHECK(host.setup->find_damage());
  host.setup->distrust();
  host.setup->prepare_timing();
  for (int sample = 0; sample < 61; ++sample) {
    CHECK_FALSE(host.damage_at_next_slot());
  }
}

TEST_CASE("a problem has as many slots as a quarter of what is left holds") {
  SetupOnHost host;
  const std::uint64_t left = kPlenty - host.budget.taken_bytes();
  host.setup->prepare_timing();
  std::set<cuda::DevicePtr> slots;
  for (int sample = 0; sample < 62; ++sample) {
    CHECK_FALSE(host.damage_at_next_slot());
    slots.insert(test::last_hashed());
  }
  const std::uint64_t spare = (left - 2 * verify::guarded_bytes(kBytes)) / 4;  // x and w are parted first
  CHECK(1 + spare / verify::slot_bytes(host.setup->request()) == 21);
  CHECK(slots.size() == 19);  // the next prime below
}

TEST_CASE("a problem without memory for more has one slot") {
  SetupOnHost host(kEnoughForOne);
  host.setup->prepare_timing();
  CHECK(host.setup->slots() == 1);
  CHECK_FALSE(host.damage_at_next_slot());
}

TEST_CASE("where another process takes the memory amid the slots there is one slot and nothing is kept") {
  SetupOnHost host(kEnoughForSlots);
  const std::uint64_t taken = host.budget.taken_bytes();
  const std::uint64_t before_slots = 2 * verify::guarded_bytes(kBytes) + verify::kWorkspaceBytes;
  test::limit_allocations(3 + 2);  // x and w are parted, the workspace, slots of two of three buffers
  host.setup->prepare_timing();
  CHECK(host.setup->slots() == 1);
  CHECK(host.budget.taken_bytes() == taken + before_slots);
  CHECK_FALSE(host.damage_at_next_slot());
}

// A problem with one input, and a scalar of 8 that the caller passes.
struct OneInput {
  OneInput(const std::string& type, const std::string& fill, std::array<double, 2> parameters,
           std::uint64_t seed = 0)
      : context("", test::make_host_driver()), budget(context.api(), kPlenty), kernels(context, budget) {
    v1::PrepareProblem request;
    request.set_reference("kernel");
    v1::BufferSpec& input = *request.add_buffers() = buffer_spec("x", v1::IN);
    input.set_type(type);
    input.set_seed(seed);
    input.mutable_fill()->set_kind(fill);
    input.mutable_fill()->mutable_parameters()->Assign(parameters.begin(), parameters.end());
    request.add_scalars()->set_name("scale");
    request.mutable_scalars(0)->set_value(8);
    setup.emplace(context, budget, kernels, request);
    setup->prepare_timing();
  }

  float passed_scalar() {
    const LoadedModule module(context.api(), "cubin", {"one_scalar"}, "a test");
    Launch launch{"one_scalar", "one_scalar", {}, {}, 0, {}};
    launch.parameters = {{"scale", ParameterSource::Caller, DType::F32}};
    setup->bind(module, {{launch}}).enqueue(context.stream());
    return test::last_scalar();
  }

  DriverContext context;
  MemoryBudget budget;
  OwnKernels kernels;
  std::optional<ProblemSetup> setup;
};

using Parameters = std::array<double, 2>;

TEST_CASE("a part of a constant is another number after timing if it is a floating-point one") {
  const std::string type = GENERATE("f32", "i32");
  OneInput one(type, "constant", {4, 0});
  CHECK(test::last_fill()[0] == 4);
  one.setup->prepare_verification_in_place(2, false);
  CHECK(test::last_fill()[0] == (type == "f32" ? 6 : 4));
}

TEST_CASE("a part of random numbers is narrower after the timing of an untrusted variant") {
  const auto [type, fill, narrower] = GENERATE(table<std::string, std::string, Parameters>(
      {{"f32", "normal", {2, 5}}, {"f16", "uniform", {4, 8}}, {"i32", "uniform", {2, 10}}}));
  OneInput one(type, fill, {2, 10});
  one.setup->prepare_verification_in_place(2, false);
  CHECK(test::last_fill() == Parameters{2, 10});
  one.setup->prepare_verification_in_place(2, false, true);
  CHECK(test::last_fill() == narrower);
}

TEST_CASE("two elements of a row of whole numbers are exchanged after the timing of an untrusted variant") {
  const std::string type = GENERATE("i32", "f32");
  OneInput one(type, "iota", {3, 2});
  const int before = test::launched().at("cubind_fill");
  one.setup->prepare_verification_in_place(2, false);
  CHECK(test::launched().at("cubind_fill") - before <= 1);
  const cuda::DevicePtr whole = test::last_filled();
  const int unchanged = test::launched().at("cubind_fill");
  one.setup->prepare_verification_in_place(2, false, true);
  if (type == "f32") {
    CHECK(test::launched().at("cubind_fill") == unchanged + 1);
    return;
  }
  CHECK(test::launched().at("cubind_fill") == unchanged + 3);
  const double element = static_cast<double>(test::last_filled() - whole) / 4;
  const double from = (test::last_fill()[0] - 3) / 2;
  CHECK(element < static_cast<double>(kBytes));
  CHECK((from >= 0 && from < static_cast<double>(kBytes)));
  CHECK(from != element);
}

TEST_CASE("scalars of the caller are others at the verification of an untrusted variant alone") {
  OneInput one("u8", "uniform", {0, 9});
  CHECK(one.passed_scalar() == 8);
  one.setup->prepare_verification_in_place(2, false, true);
  const float other = one.passed_scalar();
  CHECK((other >= 0.6F * 8 && other <= 0.95F * 8));
  CHECK(other * 8 == std::floor(other * 8));
  one.setup->prepare_verification_in_place(2, false);
  CHECK(one.passed_scalar() == 8);
}

TEST_CASE("each job draws other values of the caller's scalars") {
  std::set<float> drawn;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    OneInput one("f32", "normal", {0, 1}, seed);
    one.setup->prepare_verification_in_place(2, false, true);
    drawn.insert(one.passed_scalar());
  }
  CHECK(drawn.size() > 5);
}

TEST_CASE("scattered elements of an untrusted variant's inputs change") {
  const auto [type, fill, changed, grain_bits] =
      GENERATE(table<std::string, std::string, Parameters, int>({{"f32", "normal", {2, 5}, 2},
                                                                 {"f16", "uniform", {4, 8}, 2},
                                                                 {"i32", "uniform", {2, 10}, 2},
                                                                 {"f32", "constant", {3, 0}, -1},
                                                                 {"i32", "constant", {2, 0}, -1}}));
  OneInput one(type, fill, {2, 10});
  one.setup->prepare_verification_scattered(0);
  CHECK(test::last_fill()[0] == 2);
  CHECK(test::last_grain_bits() == -1);
  one.setup->prepare_verification_scattered(3);
  CHECK(test::last_fill()[0] == changed[0]);
  CHECK((fill == "constant" || test::last_fill()[1] == changed[1]));
  CHECK(test::last_grain_bits() == grain_bits);
}

TEST_CASE("a fenced run has its buffers at the end of their memory, which another run does not need") {
  SetupOnHost host;
  const LoadedModule module(host.context.api(), "cubin", {"two_pointers"}, "a test");
  Launch launch{"two_pointers", "two_pointers", {}, {}, 0, {}};
  launch.parameters = {{"x", ParameterSource::Buffer, DType::U8, Role::In, kBytes, 16, 0},
                       {"y", ParameterSource::Buffer, DType::U8, Role::Out, kBytes, 16, 0}};
  host.setup->prepare_verification(0);
  const std::uint64_t taken = host.budget.taken_bytes();
  const auto pointers = test::last_pointers();
  if (GENERATE(false, true)) {
    test::limit_allocations(2);  // of three buffers
    CHECK_FALSE(host.setup->run_fenced(module, {{launch}}));
    CHECK(test::last_pointers() == pointers);
  } else {
    CHECK(host.setup->run_fenced(module, {{launch}}));
    CHECK(test::last_pointers()[1] + kBytes == test::last_mapping_ends()[0]);  // y comes last by name
    CHECK(test::last_pointers()[0] % test::kGranularity == 0);
    CHECK_FALSE(host.setup->find_damage());
  }
  CHECK(host.budget.taken_bytes() == taken);
}

TEST_CASE("each seed has inputs of its own") {
  SetupOnHost host;
  host.setup->prepare_timing();
  host.setup->prepare_verification(1);
  CHECK(host.fills([&] { host.setup->prepare_verification(2); }) == 2);
  CHECK(host.fills([&] { host.setup->prepare_verification(2); }) == 0);
}

}  // namespace
}  // namespace cubind::worker
