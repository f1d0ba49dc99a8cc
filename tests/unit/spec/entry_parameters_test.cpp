#include "tuner/spec/entry_parameters.hpp"

#include <catch2/catch.hpp>

namespace cubind::test {
namespace {

using Types = std::vector<std::string>;

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

TEST_CASE("sizes come from the cubin and types from the symbol where it has as many") {
  const CubinEntry entry{.parameter_bytes = std::vector<std::uint32_t>{8, 4}};
  const auto both = entry_parameters("_Z1kPfi", &entry);
  REQUIRE(both);
  CHECK(both->at(0).type == "float*");
  CHECK(both->at(1).bytes == 4);
  const auto sizes = entry_parameters("_Z1kPfii", &entry);
  REQUIRE(sizes);
  CHECK(sizes->size() == 2);
  CHECK(sizes->at(0).type.empty());
  CHECK(entry_parameters("_Z1kPfii", nullptr)->size() == 3);
  CHECK_FALSE(entry_parameters("plain", nullptr));
}

}  // namespace
}  // namespace cubind::test
