#include <catch2/catch.hpp>
#include <set>

#include "plan/launch_plan.hpp"
#include "tests/support/triton_spec.hpp"
#include "tests/unit/spec/spec_builder.hpp"
#include "tuner/spec/keys.hpp"
#include "tuner/spec/npy.hpp"
#include "tuner/spec/space.hpp"

namespace cubind::test {
namespace {

const Problem kProblem{{{"N", 4096}}, {}, {}, ""};

Configuration config(std::int64_t index) { return {{{"CONFIG", index}}}; }

LaunchPlan plan_of(const KernelSpec& spec, std::int64_t index) {
  const PlanEvaluator plan(spec.plan_template(kProblem, config(index)), kProblem, config(index), h200());
  return plan.evaluate(kProblem, config(index)).plan.value();
}

Key artifact_of(const KernelSpec& spec, std::int64_t index) {
  return artifact_key(artifact_source(spec, kProblem, config(index), "sm_90"), {"triton 3.6.0", {}, {}, {}});
}

TEST_CASE("a Triton kernel's configurations are the values of CONFIG and its defaults in their order") {
  const auto spec = TritonSpec().parse();
  REQUIRE(spec->tunables.size() == 1);
  CHECK(spec->tunables.front().values == std::vector<std::int64_t>{0, 1, 3, 4});
  CHECK(spec->defaults == std::vector{config(0), config(1), config(3), config(4)});
  CHECK(count_valid(*spec, kProblem, h200()).valid == 4);
}

TEST_CASE("a Triton kernel is launched with its configuration's grid and warps and two null pointers") {
  const auto spec = TritonSpec().parse();
  for (const auto& [index, blocks, threads] :
       {std::tuple{0, 32U, 128U}, {1, 16U, 256U}, {3, 32U, 256U}, {4, 32U, 256U}}) {
    const Launch launch = plan_of(*spec, index).launches.at(0);
    CHECK(launch.grid == Dim3{blocks, 1, 1});
    CHECK(launch.block == Dim3{threads, 1, 1});
    REQUIRE(launch.parameters.size() == 5);
    CHECK(launch.parameters[4].value == 0);
    CHECK(launch.parameters[4].type == DType::I64);
  }
}

TEST_CASE("a buffer that some configurations clear is an output of the others") {
  TritonSpec builder, all;
  const auto plain = builder.parse();
  builder.json["name"] = all.json["name"] = "";
  builder.json["arguments"]["y"]["role"] = all.json["arguments"]["y"]["role"] = "zero";
  builder.json["arguments"]["y"]["timed"] = {1, 3};
  all.json["arguments"]["y"]["timed"] = true;
  const auto some = builder.parse(), every = all.parse();
  CHECK(some->name != plain->name);
  CHECK(some->name != every->name);
  for (const auto& [index, role] : {std::pair{0, Role::Out}, {1, Role::Zero}, {3, Role::Zero}}) {
    CHECK(plan_of(*some, index).launches.at(0).parameters.at(1).role == role);
    CHECK(plan_of(*every, index).launches.at(0).parameters.at(1).role == Role::Zero);
  }
  CHECK(some->argument("y")->timed_zero);
}

TEST_CASE("numbers that JSON lacks are part of a kernel's name") {
  std::set<std::string> names;
  for (const char* text : {"inf", "-inf", "nan"}) {
    TritonSpec builder;
    builder.json["arguments"]["most"] = {{"scalar", "f32"}, {"from", "caller"}, {"exactly", text}};
    const auto spec = builder.parse();
    CHECK(std::to_string(spec->argument("most")->bench) == text);
    names.insert(spec->name);
  }
  CHECK(names.size() == 3);
  TritonSpec integer;
  integer.json["name"] = "x";
  integer.json["arguments"]["most"] = {{"scalar", "i32"}, {"from", "caller"}, {"exactly", "inf"}};
  CHECK_THROWS_WITH(integer.parse(), Catch::Contains("a scalar of type i32 is an integer"));
}

TEST_CASE("what compiles a kernel is read from its spec's text alone and is none for CUDA") {
  const auto spec = TritonSpec().parse();
  CHECK(triton_target(spec->bundle.spec_json, "rows.json") == TritonTarget{"3.6.0", "12.9", "sm_90"});
  CHECK_FALSE(triton_target(R"({"name": "k", "source": "k.cu"})", "k.json"));
  CHECK_THROWS_WITH(triton_target(R"({"language": "triton", "triton": {"version": "3.6.0"}})", "k.json"),
                    Catch::Contains("k.json /triton") && Catch::Contains("ptxas"));
}

TEST_CASE("the identity of Triton is that of its version and of the architecture's ptxas") {
  const TritonTarget target{"3.6.0", "12.9.86", "sm_90"};
  const ToolchainIdentity identity = triton_identity(target);
  CHECK(identity.name == "triton 3.6.0");
  CHECK(identity.nvrtc == Digest::of("triton 3.6.0"));
  CHECK(identity.builtins == Digest::of("ptxas 12.9.86"));
  CHECK(triton_identity({"3.6.0", "12.9.86", "sm_80"}) == identity);
  CHECK(triton_identity({"3.6.0", "12.8.93", "sm_90"}) != identity);
}

TEST_CASE("configurations that share an artifact are launched by one name") {
  const auto spec = TritonSpec().parse();
  const auto source = [&](std::int64_t index) {
    return artifact_source(*spec, kProblem, config(index), "sm_90");
  };
  CHECK(source(1) == source(4));
  CHECK(source(1).entries == std::vector<std::string>{"rows"});
}

TEST_CASE("the artifact key of a Triton kernel is that of its text and options alone") {
  TritonSpec builder, other;
  other.json["triton"]["key"] = OrderedJson::array();
  other.json["configurations"][0]["grid"] = {7, 1, 1};
  const auto spec = builder.parse(), same = other.parse();
  CHECK(spec->name != same->name);
  CHECK(artifact_of(*spec, 0) == artifact_of(*same, 0));
  CHECK(artifact_of(*spec, 1) == artifact_of(*spec, 4));
  CHECK(artifact_of(*spec, 0) != artifact_of(*spec, 3));
  CHECK(artifact_of(*spec, 0) != artifact_of(*spec, 1));
}

TEST_CASE("the name of a Triton kernel follows from all that decides what is compiled and from its key") {
  const std::string name = TritonSpec().parse()->name;
  CHECK(name.starts_with("rows_"));
  const auto changed = [&](const char* pointer, const OrderedJson& value) {
    TritonSpec builder;
    builder.json[OrderedJson::json_pointer(pointer)] = value;
    return builder.parse()->name != name;
  };
  CHECK(changed("/triton/version", "3.7.0"));
  CHECK(changed("/triton/ptxas", "13.0"));
  CHECK(changed("/triton/architecture", "sm_100"));
  CHECK(changed("/triton/key/0/1", 8192));
  CHECK(changed("/configurations/1/options/num_stages", 2));
  CHECK(changed("/configurations/1/ttir", Digest::of("a").hex()));
  CHECK(changed("/triton/trailing_pointers", 1));
  CHECK(changed("/arguments/y/role", "inout"));
  CHECK(changed("/arguments/y/partial", true));
  CHECK(changed("/tolerance/f32/rtol", 0.5));
  CHECK_FALSE(changed("/arguments/y/extent", 1));
  CHECK_FALSE(changed("/configurations/1/grid/0", 4));
  CHECK_FALSE(changed("/description", "of rows"));
}

TEST_CASE("a Triton kernel under another's name is refused") {
  TritonSpec builder;
  builder.json["name"] = "rows_00000000000000000000";
  CHECK_THROWS_WITH(builder.parse(), Catch::Contains("/name: must be \"rows_") &&
                                         Catch::Contains("digest of what is compiled"));
}

TEST_CASE("a TTIR file that is missing or has another content is refused") {
  TritonSpec builder;
  builder.json["name"] = builder.parse()->name;
  auto files = builder.files();
  files[0].content = "c";
  CHECK_THROWS_WITH(parse_kernel_spec({"rows.json", builder.text(), files}),
                    Catch::Contains("another SHA-256 than its name"));
  files.erase(files.begin());
  CHECK_THROWS_WITH(parse_kernel_spec({"rows.json", builder.text(), files}),
                    Catch::Contains("the file is missing"));
}

TEST_CASE("a file that no configuration names is refused") {
  TritonSpec builder;
  builder.json["name"] = builder.parse()->name;
  auto files = builder.files();
  files.push_back({"other.json", "{}"});
  CHECK_THROWS_WITH(parse_kernel_spec({"rows.json", builder.text(), files}),
                    Catch::Contains("rows.json file \"other.json\": no configuration and no fill names it"));
}

TEST_CASE("what lies in a file decides what a Triton kernel is verified with and not its name") {
  TritonSpec ones, twos;
  give_integers(ones, std::string(4 * 4096, 1));
  give_integers(twos, std::string(4 * 4096, 2));
  const auto one = ones.parse(), two = twos.parse();
  CHECK(one->file_data(one->arguments[0], kProblem).data == std::string(4 * 4096, 1));
  CHECK(one->name == two->name);
  CHECK(verification_digest(*one) != verification_digest(*two));
}

TEST_CASE("a file of data that is missing or none of NumPy's is refused") {
  TritonSpec builder;
  give_integers(builder, std::string(4 * 4096, 1));
  builder.json["name"] = builder.parse()->name;
  builder.data[0].content = "no array";
  CHECK_THROWS_WITH(builder.parse(), Catch::Contains("/arguments/x/fill/npy (x.npy): this is no .npy file"));
  builder.data.clear();
  CHECK_THROWS_WITH(builder.parse(), Catch::Contains("/arguments/x/fill/npy: there is no \"x.npy\""));
}

TEST_CASE("what a Triton spec cannot have is refused at its place") {
  for (const auto& [pointer, value, message] :
       std::initializer_list<std::tuple<const char*, OrderedJson, const char*>>{
           {"/source", "k.cu", "/source: unexpected key"},
           {"/problem/bucket", {{"N", "pow2"}}, "/problem/bucket: a Triton kernel has no buckets"},
           {"/configurations/1/index", 0, "/configurations/1/index: indices ascend: 0 follows 0"},
           {"/configurations/0/ttir", "abc", "/configurations/0/ttir: \"abc\" is not a SHA-256"},
           {"/configurations/0/options/x", 1.5, "/configurations/0/options/x"},
           {"/configurations/0/options/num_warps", 64, "/configurations/0/options/num_warps"},
           {"/configurations/0/grid", {1, 1}, "/configurations/0/grid"},
           {"/triton/trailing_pointers", 9, "/triton/trailing_pointers"},
           {"/arguments/y/role", "in", "nothing can be verified"},
           {"/arguments/x/fill",
            {{"npy", "hints"}},
            "/arguments/x/fill: a Triton kernel's file of data is \"x.npy\""},
           {"/language", "hip", "/language"}}) {
    TritonSpec builder;
    builder.json["name"] = builder.parse()->name;
    builder.json[OrderedJson::json_pointer(pointer)] = value;
    INFO(pointer);
    CHECK_THROWS_WITH(builder.parse(), Catch::Contains(message));
  }
}

TEST_CASE("grids that differ in all of 256 configurations are launched as they are given") {
  TritonSpec builder;
  builder.json["configurations"] = OrderedJson::array();
  for (std::int64_t i = 0; i < 256; ++i) {
    builder.json["configurations"].push_back(triton_configuration(i, i % 2 == 0 ? "a" : "b", 4, i / 2 + 1));
  }
  const auto spec = builder.parse();
  for (const std::int64_t i : {0, 1, 2, 100, 254, 255}) {
    CHECK(plan_of(*spec, i).launches.at(0).grid.x == i / 2 + 1);
  }
}

}  // namespace
}  // namespace cubind::test
