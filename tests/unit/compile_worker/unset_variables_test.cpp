#include "tuner/worker/unset_variables.hpp"

#include <catch2/catch.hpp>

namespace cubind::worker {
namespace {

using Catch::Contains;

/// What is said of a kernel that uses this variable.
std::string told(const std::string& symbol, const PtxVariable& variable, const std::string& source = "",
                 const std::set<std::string>& set = {}) {
  PtxModule module;
  module.variables.emplace(symbol, variable);
  v1::CompileRequest request;
  request.set_source(source);
  return unset_variables(module, {false, "", {symbol}}, set, request);
}

constexpr PtxVariable kFilter{true, true, false, 36, 4}, kCounter{false, true, false, 4, 4};

}  // namespace

TEST_CASE("a constant that nothing sets is named with the argument to write") {
  const std::string text = told("d_filter", kFilter, "__constant__ float d_filter[9];");
  CHECK_THAT(text, Contains("the __constant__ variable d_filter is read and nothing sets it"));
  CHECK_THAT(text,
             Contains(R"("d_filter": {"buffer": "f32", "extent": "9", "role": "in", "symbol": "d_filter"})"));
  CHECK_THAT(text, !Contains("scratch"));
  CHECK(told("d_filter", kFilter, "", {"d_filter"}).empty());
}

TEST_CASE("a __device__ variable may also keep what kernels leave in it") {
  CHECK_THAT(told("counter", kCounter), Contains("\"role\": \"in\"") && Contains("\"role\": \"scratch\""));
}

TEST_CASE("a variable has the name that the source gives it") {
  CHECK(variable_name("_Z6filterIfE") == "filter<float>");
  CHECK(variable_name("_ZN2ns5innerE") == "ns::inner");
  CHECK(
      variable_name("_ZN43_INTERNAL_00000000_16_cubind_kernel_cu_zero45_GLOBAL__N__00000000_16_cubind_kernel_"
                    "cu_zero4anonE") == "anon");
  CHECK(variable_name("plain") == "plain");
  CHECK(variable_name("s") == "s");  // which mangles short
}

TEST_CASE("variables that no argument can set are not meant") {
  CHECK(told("_ZZ1kPfiE7fstatic", kCounter).empty());        // of a function
  CHECK(told("$str$1", {false, true, true, 1, 1}).empty());  // ""
  CHECK(told("_ZN4cuda3std8in_placeE", {false, true, true, 1, 1}).empty());
  CHECK(told("_Z1kPf$1", {false, true, false, 16, 4}).empty());  // zeros that k copies
  CHECK(told("table", {true, false, false, 36, 4}).empty());     // initialized
}

TEST_CASE("zeros that the source asks for are right but for a constant that can be replaced") {
  CHECK(told("counter", kCounter, "__device__ unsigned counter = 0;").empty());
  CHECK(told("counter", kCounter, "namespace { __device__ unsigned int counter{}; }").empty());
  CHECK(told("counter", kCounter, "__device__ __align__(8) int counter[2][2] = {{0, 0}, {0, 0}};").empty());
  CHECK(told("zeros", kFilter, "constexpr __constant__ float zeros[9] = {};").empty());
  CHECK_FALSE(told("d_filter", kFilter, "__constant__ float d_filter[9] = {0};").empty());
}

TEST_CASE("what looks like an initializer and is none does not count") {
  for (const char* source :
       {"__device__ unsigned counter; __global__ void k() { counter = 0; }",
        "__device__ unsigned my_counter = 0, counter;", "__device__ int next(int counter = 0);",
        "__device__ bool is(int i) { return counter == i; }", "__device__ int counter[2];"}) {
    INFO(source);
    CHECK_FALSE(told("counter", kCounter, source).empty());
  }
}

TEST_CASE("a header may have the declaration") {
  PtxModule module;
  module.variables.emplace("counter", kCounter);
  v1::CompileRequest request;
  request.add_headers()->set_content("__device__ unsigned counter = 0;");
  CHECK(unset_variables(module, {false, "", {"counter"}}, {}, request).empty());
}

}  // namespace cubind::worker
