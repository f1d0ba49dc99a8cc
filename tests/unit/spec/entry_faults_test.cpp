#include "tuner/spec/entry_faults.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/spec/cubin_builder.hpp"
#include "tests/unit/spec/spec_builder.hpp"

namespace cubind::test {
namespace {

constexpr const char* kEntry = "k<T>";

/// A kernel of x and y (buffers of T), z (scratch of f32) and n, alpha and skip (i64, f32 and u8).
struct EntryFixture {
  EntryFixture() {
    builder.json["arguments"]["z"] = {{"buffer", "f32"}, {"extent", "N"}, {"role", "scratch"}};
    builder.json["arguments"]["skip"] = {{"scalar", "u8"}, {"from", "caller"}, {"bench", 0}};
    builder.json["launches"][0]["arguments"] = {"x", "y", "z", "n", "alpha", "skip"};
    builder.json["problem"]["types"]["T"].push_back("f16");
    builder.json["tolerance"]["f16"] = builder.json["tolerance"]["bf16"];
  }
  PlanTemplate launches(DType type) const {
    const auto spec = builder.parse();
    const Problem problem{{{"N", 8}, {"D", 8}}, {{"T", type}}, {}, ""};
    PlanTemplate made = spec->plan_template(problem, spec->defaults.front());
    made.launches.front().entry = kEntry;
    return made;
  }
  /// The faults where the entry's mangled parameters are these; the function is void k(...).
  std::vector<EntryFault> faults(const std::string& parameters, DType type = DType::Bf16) const {
    return entry_faults(launches(type), {}, compiled_entries("", {kEntry}, {"_Z1k" + parameters}));
  }
  /// The same for an entry whose cubin tells these sizes.
  std::vector<EntryFault> sized(const std::string& symbol, const std::vector<std::uint32_t>& bytes) const {
    CubinEntry entry{.parameter_bytes = bytes};
    return entry_faults(launches(DType::F32), {},
                        {{kEntry, {.parameters = entry_parameters(symbol, &entry)}}});
  }
  SpecBuilder builder;
};

Launch launch_of(const std::string& entry, const Dim3& grid, const Dim3& block) {
  Launch launch;
  launch.entry = entry;
  launch.grid = grid;
  launch.block = block;
  return launch;
}

PlanTemplate launches_of(const std::vector<std::string>& entries) {
  PlanTemplate launches;
  for (const std::string& entry : entries) {
    launches.launches.emplace_back().entry = entry;
  }
  return launches;
}

/// What the limits do not allow of a launch with this grid and block.
std::vector<EntryFault> exceeded(const CubinEntry& limits, const Dim3& grid, const Dim3& block) {
  return entry_faults(launches_of({kEntry}), {{launch_of(kEntry, grid, block)}},
                      {{kEntry, {.limits = limits}}});
}

TEST_CASE_METHOD(EntryFixture, "arguments that are what the entry takes have no fault") {
  CHECK(faults("PK13__nv_bfloat16PS_Pflfh").empty());
  CHECK(faults("PK6__halfPS_Pfxfb", DType::F16).empty());
  CHECK(faults("PKfPfS1_mfa", DType::F32).empty());
  CHECK(sized("_Z1kPKfPfS1_mfa", {8, 8, 8, 8, 4, 1}).empty());
}

TEST_CASE_METHOD(EntryFixture, "raw bits and scratch and types of the kernel's own fit") {
  CHECK(faults("PKvPtPdlfh").empty());
  CHECK(faults("PK5uint4P6float4P5Stateyj4Mode").empty());
  CHECK(faults("4SpanPKPK13__nv_bfloat16Pflfh").empty());
  CHECK(sized("_Z1k4SpanPfS0_l5Alpha4Mode", {8, 8, 8, 8, 4, 1}).empty());
}

TEST_CASE_METHOD(EntryFixture, "another number of arguments is a fault of the list") {
  CHECK(faults("PK13__nv_bfloat16PS_l") ==
        std::vector<EntryFault>{{"/launches/0/arguments",
                                 "has 6, the entry takes 3: (__nv_bfloat16 const*, __nv_bfloat16*, long)"}});
  CHECK(sized("plain", {8, 12}) ==
        std::vector<EntryFault>{
            {"/launches/0/arguments", "has 6, the entry takes 2: (of 8 bytes, of 12 bytes)"}});
}

TEST_CASE_METHOD(EntryFixture, "a buffer of another element type is a fault that names both types") {
  CHECK(faults("PK6__halfP13__nv_bfloat16Pflfh") ==
        std::vector<EntryFault>{{"/launches/0/arguments/0",
                                 "x is a buffer of bf16 (__nv_bfloat16*), the entry's parameter is __half "
                                 "const*"}});
  CHECK(faults("PKhP13__nv_bfloat16Pflfh").size() == 1);
  CHECK(faults("PKsP13__nv_bfloat16Pflfh").size() == 1);
}

TEST_CASE_METHOD(EntryFixture, "a pointer where a value is passed and the other way round are faults") {
  const auto found = faults("lP13__nv_bfloat16PfPlfh");
  REQUIRE(found.size() == 2);
  CHECK(found[0].pointer == "/launches/0/arguments/0");
  CHECK(found[1] == EntryFault{"/launches/0/arguments/3",
                               "n is a scalar i64 (long long), the entry's parameter is long*"});
}

TEST_CASE("a tensor map is a parameter of 128 bytes that is no pointer") {
  const auto fits_map = [](const char* symbol, std::vector<std::uint32_t> sizes) {
    ParameterTemplate map{"x", ParameterSource::TensorMap, DType::Bf16, Role::In, "N", 16, ""};
    map.tensor_map.argument = "x_map";
    PlanTemplate launches = launches_of({kEntry});
    launches.launches[0].parameters = {map};
    const CubinEntry entry{.parameter_bytes = std::move(sizes)};
    const auto found =
        entry_faults(launches, {}, {{kEntry, {.parameters = entry_parameters(symbol, &entry)}}});
    return found.empty() ? std::string() : found.front().cause;
  };
  CHECK(fits_map("_Z1k14CUtensorMap_st", {128}).empty());
  CHECK(fits_map("plain", {128}).empty());
  CHECK(fits_map("_Z1k10Descriptor", {128}).empty());
  CHECK(fits_map("_Z1kPK14CUtensorMap_st", {8}) ==
        "x_map is a tensor map of x (const __grid_constant__ CUtensorMap), the entry's parameter is "
        "CUtensorMap_st const*");
  CHECK_THAT(fits_map("plain", {8}), Catch::Contains("the entry's parameter is of 8 bytes"));
}

TEST_CASE_METHOD(EntryFixture, "a reference is a pointer") {
  CHECK(faults("RK13__nv_bfloat16RS_Pflfh").empty());
  CHECK(faults("PK13__nv_bfloat16PS_PfRKlfh") ==
        std::vector<EntryFault>{{"/launches/0/arguments/3",
                                 "n is a scalar i64 (long long), the entry's parameter is long const&"}});
}

TEST_CASE_METHOD(EntryFixture, "a scalar of another size or kind is a fault") {
  for (const char* parameters : {"PvS_S_ifh", "PvS_S_ldh", "PvS_S_lfi", "PvS_S_ffh", "PvS_S_lfd"}) {
    INFO(parameters);
    CHECK(faults(parameters).size() == 1);
  }
}

TEST_CASE_METHOD(EntryFixture, "a value of a type that is not known has the size of the scalar") {
  CHECK(sized("_Z1kPfS_S_l6float4h", {8, 8, 8, 8, 16, 1}) ==
        std::vector<EntryFault>{
            {"/launches/0/arguments/4",
             "alpha is a scalar f32 (float), the entry's parameter is float4 of 16 bytes"}});
  CHECK(
      sized("_Z1k4SpanPfS_lfh", {16, 8, 8, 8, 4, 1}) ==
      std::vector<EntryFault>{{"/launches/0/arguments/0",
                               "x is a buffer of f32 (float*), the entry's parameter is Span of 16 bytes"}});
}

TEST_CASE_METHOD(EntryFixture, "the parameters of an entry with a C name are compared by size") {
  CHECK(sized("plain", {8, 8, 8, 8, 4, 1}).empty());
  CHECK(sized("plain", {8, 8, 8, 8, 8, 4}) ==
        std::vector<EntryFault>{
            {"/launches/0/arguments/4", "alpha is a scalar f32 (float), the entry's parameter is of 8 bytes"},
            {"/launches/0/arguments/5",
             "skip is a scalar u8 (unsigned char), the entry's parameter is of 4 bytes"}});
}

TEST_CASE_METHOD(EntryFixture, "the reference's launches are compared as the kernel's") {
  const auto spec = builder.parse();
  const Problem problem{{{"N", 8}, {"D", 8}}, {{"T", DType::Bf16}}, {}, ""};
  const PlanTemplate launches = spec->reference_template(problem);
  const auto compared = [&](const std::string& symbol) {
    return entry_faults(launches, {}, compiled_entries("", {launches.launches.front().entry}, {symbol}));
  };
  CHECK(compared("_Z1rPK13__nv_bfloat16PS_lf").empty());
  CHECK(compared("_Z1rPK13__nv_bfloat16PS_if") ==
        std::vector<EntryFault>{{"/reference/launches/0/arguments/2",
                                 "n is a scalar i64 (long long), the entry's parameter is int"}});
  const auto missing = compared("_Z1rPK13__nv_bfloat16PS_lfi");
  REQUIRE(missing.size() == 1);
  CHECK(missing[0].pointer == "/reference/launches/0/arguments");
}

TEST_CASE_METHOD(EntryFixture, "an entry of which nothing is known is not compared") {
  CHECK(entry_faults(launches(DType::F32), {}, compiled_entries("no cubin", {kEntry}, {"scale"})).empty());
  CHECK(entry_faults(launches(DType::F32), {}, {}).empty());
}

TEST_CASE("an entry is found in its cubin by its symbol") {
  const std::string cubin =
      make_cubin({{"_Z1kPf", parameter(0, 0, 8) + all_bytes(8) + extents(0x05, 64, 1, 1)}});
  const CompiledEntries entries = compiled_entries(cubin, {"k", "other"}, {"_Z1kPf", "other"});
  CHECK(entries.at("k").limits.max_threads == 64);
  CHECK(entries.at("k").parameters->front().type == "float*");
  CHECK(entries.at("k").parameters->front().bytes == 8);
  CHECK_FALSE(entries.at("other").parameters);
}

TEST_CASE("a block of more threads than the entry was compiled for is a limit") {
  CHECK(exceeded({.max_threads = 64}, {}, {8, 8, 1}).empty());
  CHECK(exceeded({.max_threads = 64}, {}, {65, 1, 1}) ==
        std::vector<EntryFault>{{"/launches/0/block",
                                 "k<T> is launched with blocks of 65 x 1 x 1 threads, the entry is compiled "
                                 "for at most 64 threads per block (__launch_bounds__)",
                                 true}});
}

TEST_CASE("an entry that is compiled for one block has no other") {
  CHECK(exceeded({.block = Dim3{32, 4, 1}}, {}, {32, 4, 1}).empty());
  CHECK(exceeded({.block = Dim3{32, 4, 1}}, {}, {128, 1, 1}) ==
        std::vector<EntryFault>{{"/launches/0/block",
                                 "k<T> is launched with blocks of 128 x 1 x 1 threads, the entry is compiled "
                                 "for blocks of 32 x 4 x 1 threads and no others",
                                 true}});
}

TEST_CASE("a grid is a multiple of the cluster unless it counts clusters") {
  CubinEntry limits{.cluster = Dim3{2, 1, 1}};
  CHECK(exceeded(limits, {4, 3, 1}, {}).empty());
  CHECK(
      exceeded(limits, {3, 4, 1}, {}) ==
      std::vector<EntryFault>{{"/launches/0/grid",
                               "k<T> is launched with a grid of 3 x 4 x 1, the entry is compiled for "
                               "clusters of 2 x 1 x 1 blocks, and the grid must be a multiple of that along "
                               "each axis",
                               true}});
  limits.grid_counts_clusters = true;
  CHECK(exceeded(limits, {3, 4, 1}, {}).empty());
}

TEST_CASE(
    "a launch's cluster is that of the entry and there is one where the entry takes it from its launch") {
  const auto with = [](const CubinEntry& limits, std::optional<Dim3> cluster) {
    Launch launch = launch_of(kEntry, {4, 4, 1}, {});
    launch.cluster = cluster;
    return entry_faults(launches_of({kEntry}), {{launch}}, {{kEntry, {.limits = limits}}});
  };
  CHECK(with({}, Dim3{2, 1, 1}).empty());
  CHECK(with({.cluster = Dim3{2, 1, 1}}, Dim3{2, 1, 1}).empty());
  CHECK(with({.wants_launch_clusters = true}, Dim3{2, 1, 1}).empty());
  CHECK(
      with({.wants_launch_clusters = true}, {}) ==
      std::vector<EntryFault>{{"/launches/0/cluster",
                               "k<T> is launched without clusters, the entry takes its cluster size from the "
                               "launch: give it as \"cluster\", or to __cluster_dims__",
                               true}});
  CHECK(with({.cluster = Dim3{2, 1, 1}, .grid_counts_clusters = true}, Dim3{2, 1, 1}).size() == 1);
  CHECK(with({.cluster = Dim3{2, 1, 1}}, Dim3{4, 1, 1}) ==
        std::vector<EntryFault>{
            {"/launches/0/cluster",
             "k<T> is launched with clusters of 4 x 1 x 1 blocks, the entry is compiled for "
             "clusters of 2 x 1 x 1 blocks and no others",
             true}});
}

TEST_CASE("a launch that is left out is not compared and the next one is reported at its own place") {
  const CompiledEntry bounded{.limits = {.max_threads = 64}};
  const auto found = entry_faults(launches_of({"first", "second"}), {{launch_of("second", {}, {128, 1, 1})}},
                                  {{"first", bounded}, {"second", bounded}});
  REQUIRE(found.size() == 1);
  CHECK(found[0].pointer == "/launches/1/block");
}

TEST_CASE_METHOD(EntryFixture, "scalars of 16 bits and unsigned ones and bool fit integers of their size") {
  for (const auto& [type, parameter] :
       {std::pair("u64", "m"), std::pair("u64", "y"), std::pair("u32", "j"), std::pair("i16", "s"),
        std::pair("u16", "t"), std::pair("bool", "b")}) {
    INFO(type);
    builder.json["arguments"]["skip"]["scalar"] = type;
    CHECK(faults("PK13__nv_bfloat16PS_Pflf" + std::string(parameter)).empty());
    CHECK(faults("PK13__nv_bfloat16PS_Pflfd").size() == 1);
  }
}

TEST_CASE_METHOD(EntryFixture, "the content of a variable is no parameter") {
  builder.json["arguments"]["z"]["symbol"] = "z";
  CHECK(faults("PK13__nv_bfloat16PS_lfh").empty());
  CHECK_THAT(faults("PK13__nv_bfloat16PS_Pflfh").at(0).cause,
             Catch::StartsWith("has 5 that are passed, the entry takes 6: "));
}

TEST_CASE("the content of a variable fits into it") {
  Launch launch = launch_of(kEntry, {}, {});
  launch.parameters = {
      {"w", ParameterSource::Symbol, DType::F32, Role::In, 40, 16, 0, {}, "filter", "_Z6filter"}};
  CompiledEntries entries{{kEntry, {}}, {"&filter", {.variable_bytes = 40}}};
  CHECK(entry_faults(launches_of({kEntry}), {{launch}}, entries).empty());
  entries["&filter"].variable_bytes = 36;
  CHECK(entry_faults(launches_of({kEntry}), {{launch}}, entries) ==
        std::vector<EntryFault>{
            {"/launches/0/arguments/0", "w has 40 bytes, the variable filter holds 36", true}});
}

}  // namespace
}  // namespace cubind::test
