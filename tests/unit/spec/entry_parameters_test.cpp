#include "tuner/spec/entry_parameters.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/spec/spec_builder.hpp"

namespace cubind::test {
namespace {

using Types = std::vector<std::string>;

/// A kernel of x and y (buffers of T), z (scratch of f32) and n, alpha and skip (i64, f32 and u8).
struct EntryFixture {
  EntryFixture() {
    builder.json["arguments"]["z"] = {{"buffer", "f32"}, {"extent", "N"}, {"role", "scratch"}};
    builder.json["arguments"]["skip"] = {{"scalar", "u8"}, {"from", "caller"}, {"bench", 0}};
    builder.json["launches"][0]["arguments"] = {"x", "y", "z", "n", "alpha", "skip"};
    builder.json["problem"]["types"]["T"].push_back("f16");
    builder.json["tolerance"]["f16"] = builder.json["tolerance"]["bf16"];
  }
  /// The faults where the entry's mangled parameters are these; the function is void k(...).
  std::vector<ArgumentFault> faults(const std::string& parameters, DType type = DType::Bf16) const {
    const auto spec = builder.parse();
    Problem problem{{{"N", 8}, {"D", 8}}, {{"T", type}}, {}, ""};
    return argument_faults(*spec, problem, {"_Z1k" + parameters});
  }
  SpecBuilder builder;
};

TEST_CASE("the parameters of a mangled entry are read as the demangler spells them") {
  CHECK(parameter_types("_Z15rmsnorm_forwardI13__nv_bfloat16Li256ELi8ELi1EEvPKT_S3_PS1_llf") ==
        Types{"__nv_bfloat16 const*", "__nv_bfloat16 const*", "__nv_bfloat16*", "long", "long", "float"});
  CHECK(parameter_types("_ZN12_GLOBAL__N_11kEPPfPFvidEPA4_f") ==
        Types{"float**", "void (*)(int, double)", "float (*) [4]"});
  CHECK(parameter_types("_Z1kIXgtLi3ELi2EEEvPf3VecIfLi4EE") == Types{"float*", "Vec<float, 4>"});
  CHECK(parameter_types("_Z1kv") == Types{});
}

TEST_CASE("a symbol that is not mangled tells no parameters") {
  for (const char* symbol : {"saxpy", "", "_Z", "_Zzz", "_Z1k"}) {
    CHECK_FALSE(parameter_types(symbol));
  }
  CHECK_FALSE(parameter_types("_Z1k" + std::string(100'000, 'P') + "f"));
}

TEST_CASE_METHOD(EntryFixture, "arguments that are what the entry takes have no fault") {
  CHECK(faults("PK13__nv_bfloat16PS_Pflfh").empty());
  CHECK(faults("PK6__halfPS_Pfxfb", DType::F16).empty());
  CHECK(faults("PKfPfS1_mfa", DType::F32).empty());
}

TEST_CASE_METHOD(EntryFixture, "raw bits and scratch and types of the kernel's own fit") {
  CHECK(faults("PKvPtPdlfh").empty());
  CHECK(faults("PK5uint4P6float4P5Stateyj4Mode").empty());
  CHECK(faults("4SpanPKPK13__nv_bfloat16Pflfh").empty());
}

TEST_CASE_METHOD(EntryFixture, "another number of arguments is a fault of the list") {
  CHECK(
      faults("PK13__nv_bfloat16PS_l") ==
      std::vector<ArgumentFault>{{"/launches/0/arguments",
                                  "has 6, the entry takes 3: (__nv_bfloat16 const*, __nv_bfloat16*, long)"}});
}

TEST_CASE_METHOD(EntryFixture, "a buffer of another element type is a fault that names both types") {
  CHECK(faults("PK6__halfP13__nv_bfloat16Pflfh") ==
        std::vector<ArgumentFault>{{"/launches/0/arguments/0",
                                    "x is a buffer of bf16 (__nv_bfloat16*), the entry's parameter is __half "
                                    "const*"}});
  CHECK(faults("PKhP13__nv_bfloat16Pflfh").size() == 1);
  CHECK(faults("PKsP13__nv_bfloat16Pflfh").size() == 1);
}

TEST_CASE_METHOD(EntryFixture, "a pointer where a value is passed and the other way round are faults") {
  const auto found = faults("lP13__nv_bfloat16PfPlfh");
  REQUIRE(found.size() == 2);
  CHECK(found[0].pointer == "/launches/0/arguments/0");
  CHECK(found[1] == ArgumentFault{"/launches/0/arguments/3",
                                  "n is a scalar i64 (long long), the entry's parameter is long*"});
}

TEST_CASE_METHOD(EntryFixture, "a scalar of another size or kind is a fault") {
  for (const char* parameters : {"PvS_S_ifh", "PvS_S_ldh", "PvS_S_lfi", "PvS_S_ffh", "PvS_S_lfd"}) {
    INFO(parameters);
    CHECK(faults(parameters).size() == 1);
  }
}

TEST_CASE_METHOD(EntryFixture, "the reference's launches are compared as the kernel's") {
  const auto spec = builder.parse();
  const Problem problem{{{"N", 8}, {"D", 8}}, {{"T", DType::Bf16}}, {}, ""};
  CHECK(reference_argument_faults(*spec, problem, {"_Z1rPK13__nv_bfloat16PS_lf"}).empty());
  CHECK(reference_argument_faults(*spec, problem, {"_Z1rPK13__nv_bfloat16PS_if"}) ==
        std::vector<ArgumentFault>{{"/reference/launches/0/arguments/2",
                                    "n is a scalar i64 (long long), the entry's parameter is int"}});
  const auto missing = reference_argument_faults(*spec, problem, {"_Z1rPK13__nv_bfloat16PS_lfi"});
  REQUIRE(missing.size() == 1);
  CHECK(missing[0].pointer == "/reference/launches/0/arguments");
}

TEST_CASE_METHOD(EntryFixture, "an entry whose symbol tells no types is not compared") {
  const Problem problem{{{"N", 8}, {"D", 8}}, {{"T", DType::F32}}, {}, ""};
  CHECK(argument_faults(*builder.parse(), problem, {"scale"}).empty());
}

}  // namespace
}  // namespace cubind::test
