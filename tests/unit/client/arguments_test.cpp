#include "client/arguments.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>

#include "base/error.hpp"
#include "tests/fakes/sample_reply.hpp"
#include "tests/support/refusal_of.hpp"

namespace cubind {
namespace {

LaunchPlan sample_plan() {
  const Problem problem{{{"N", 1024}, {"D", 4096}}, {{"T", DType::F16}}, {}, ""};
  const PlanEvaluator evaluator(test::sample_template(), problem, test::sample_configuration(),
                                {132, 232448, 0, 90});
  return *evaluator.evaluate(problem, test::sample_configuration()).plan;
}

Arguments all_arguments() {
  return Arguments()
      .buffer("x", cuda::DevicePtr{0x1000})
      .buffer("y", cuda::DevicePtr{0x2000})
      .buffer("partial", cuda::DevicePtr{0x3000})
      .scalar("alpha", 0.5);
}

template <typename T>
T value_of(const ParameterBytes& bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

// Of the launch's caller-given parameters, in order.
std::vector<ParameterBytes> pack(const Launch& launch, const Arguments& arguments) {
  std::vector<ParameterBytes> packed;
  for (const Parameter& parameter : launch.parameters) {
    if (parameter.source != ParameterSource::Value) {
      const auto given = std::ranges::find(arguments.entries(), parameter.name, &Arguments::Entry::name);
      packed.push_back(
          pack_argument(parameter, given == arguments.entries().end() ? ArgumentValue() : given->value));
    }
  }
  return packed;
}

std::string message_of(const Launch& launch, const Arguments& arguments) {
  return test::refusal_of([&] { pack(launch, arguments); });
}

Parameter scalar_of(DType type, std::string name = "s") {
  return {std::move(name), ParameterSource::Caller, type, Role::None, 0, 0, 0};
}

}  // namespace

TEST_CASE("arguments are packed as the driver takes them") {
  const auto packed = pack(sample_plan().launches[0], all_arguments());
  REQUIRE(packed.size() == 3);
  CHECK(value_of<cuda::DevicePtr>(packed[0]) == 0x1000);
  CHECK(value_of<cuda::DevicePtr>(packed[1]) == 0x2000);
  CHECK(value_of<float>(packed[2]) == 0.5f);
}

TEST_CASE("a pointer below its alignment is refused by name with both alignments") {
  const Arguments arguments = all_arguments().buffer("y", cuda::DevicePtr{0x2008});
  CHECK(message_of(sample_plan().launches[0], arguments) ==
        "argument y: the pointer is aligned to 8 bytes, the kernel needs 16");
}

TEST_CASE("a null pointer is refused with the size that is needed") {
  const Arguments arguments = all_arguments().buffer("x", nullptr);
  CHECK(message_of(sample_plan().launches[0], arguments) ==
        "argument x: the pointer is null, expected 8388608 bytes of device memory");
}

TEST_CASE("a missing argument is refused by name") {
  const Arguments arguments =
      Arguments().buffer("x", cuda::DevicePtr{0x1000}).buffer("y", cuda::DevicePtr{0x2000});
  CHECK(message_of(sample_plan().launches[0], arguments) ==
        "argument alpha: is missing: the kernel takes a scalar of that name");
}

TEST_CASE("a buffer without elements need not be given") {
  Parameter bias{"bias", ParameterSource::Buffer, DType::F16, Role::In, 0, 16, 0};
  CHECK(value_of<cuda::DevicePtr>(pack_argument(bias, ArgumentValue())) == 0);
  bias.extent_bytes = 2;
  CHECK_THROWS_WITH(pack_argument(bias, ArgumentValue()), Catch::Contains("argument bias: is missing"));
}

TEST_CASE("a buffer instead of a scalar is refused and so is the reverse") {
  CHECK(message_of(sample_plan().launches[0], all_arguments().buffer("alpha", cuda::DevicePtr{16})) ==
        "argument alpha: is a scalar of type f32, a buffer was given");
  CHECK(message_of(sample_plan().launches[0], all_arguments().scalar("x", 1)) ==
        "argument x: is a buffer of 8388608 bytes of device memory, a scalar was given");
}

TEST_CASE("arguments are numbered in the order of the kernel and not in the order given") {
  const std::vector<Parameter> known = {scalar_of(DType::F32, "alpha"), scalar_of(DType::F32, "beta")};
  const auto numbered = number_arguments(known, Arguments().scalar("beta", 2.0));
  REQUIRE(numbered.size() == 2);
  CHECK(std::holds_alternative<std::monostate>(numbered[0]));
  CHECK(std::get<double>(numbered[1]) == 2.0);
}

TEST_CASE("an argument that no launch takes is refused with the nearest name") {
  const std::vector<Parameter> known = {scalar_of(DType::F32, "alpha")};
  CHECK_THROWS_WITH(number_arguments(known, Arguments().scalar("alpa", 1.0)),
                    Catch::Contains("alpa") && Catch::Contains("did you mean \"alpha\""));
  CHECK_THROWS_WITH(number_arguments(known, Arguments().scalar("N", 3)), Catch::Contains("argument N"));
}

}  // namespace cubind
