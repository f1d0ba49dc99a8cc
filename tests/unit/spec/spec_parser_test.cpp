#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "tests/support/refusal_of.hpp"
#include "tests/unit/spec/spec_builder.hpp"
#include "tuner/spec/keys.hpp"

namespace cubind::test {
using test::SpecBuilder;

namespace {

// "place: cause", or nothing where the spec is accepted.
template <typename Edit>
std::string refusal(Edit edit) {
  SpecBuilder builder;
  edit(builder.json);
  return refusal_of([&] { builder.parse(); });
}

}  // namespace

TEST_CASE("tunables and dims and arguments keep their declared order") {
  const auto spec = SpecBuilder().parse();
  CHECK(spec->dims[0].name == "N");
  CHECK(spec->tunables[0].name == "THREADS");
  CHECK(spec->tunables[2].name == "BLOCKS");
  CHECK(spec->arguments[3].name == "alpha");
  CHECK(to_string(spec->defaults[0]) == "THREADS=256,VECTOR=4,BLOCKS=1");
}

TEST_CASE("faults of sections that do not need each other are named together") {
  CHECK_THAT(refusal([](OrderedJson& json) {
               json["source"] = "../kernel.cu";
               json["tunables"]["VECTOR"] = {1, 1};
             }),
             Catch::StartsWith("scale.json /source: ") &&
                 Catch::EndsWith("\nscale.json /tunables/VECTOR/1: 1 is listed twice"));
  CHECK(refusal([](OrderedJson& json) {
          json["soruce"] = json["source"];
          json.erase("source");
        }) == "scale.json /soruce: unexpected key, did you mean \"source\"?");
  const std::string of_expressions = refusal([](OrderedJson& json) {
    json["constraints"] = {"VECTRO <= 4"};
    json["arguments"]["x"]["role"] = "inn";
    json["launches"] = 1;
  });
  CHECK_THAT(of_expressions, Catch::StartsWith("scale.json /constraints/0: "));
  CHECK_THAT(of_expressions, Catch::Contains("\nscale.json /arguments/x/role: "));
  CHECK_THAT(of_expressions, !Catch::Contains("launches"));  // which name arguments
  const std::string of_launches = refusal([](OrderedJson& json) {
    json["constraints"] = {"VECTRO <= 4"};
    json["launches"] = 1;
    json.erase("tolerance");
  });
  CHECK_THAT(of_launches, Catch::StartsWith("scale.json /constraints/0: "));
  CHECK_THAT(of_launches, Catch::Contains("\nscale.json /launches: ") && Catch::Contains("\"tolerance\""));
}

TEST_CASE("a default is put in declared order") {
  SpecBuilder builder;
  builder.json["default"] = {{{"BLOCKS", 1}, {"VECTOR", 2}, {"THREADS", 64}}};
  CHECK(to_string(builder.parse()->defaults[0]) == "THREADS=64,VECTOR=2,BLOCKS=1");
}

TEST_CASE("a scalar may be unsigned") {
  SpecBuilder builder;
  builder.json["arguments"]["n"]["scalar"] = "uint32";
  CHECK(builder.parse()->argument("n")->type == "u32");
}

TEST_CASE("a value that a computed scalar's type does not hold makes a configuration invalid") {
  SpecBuilder builder;
  builder.json["arguments"]["n"]["scalar"] = "u16";
  const auto spec = builder.parse();
  const Problem problem = problem_of(*spec, "N=1024,D=64,T=f32");
  const PlanEvaluator plan(spec->plan_template(problem, spec->defaults[0]), problem, spec->defaults[0],
                           h200());
  CHECK_THAT(plan.evaluate(problem, spec->defaults[0]).violation, Catch::Contains("65536 does not fit u16"));
}

TEST_CASE("true and false are values of a tunable and stand for 1 and 0") {
  SpecBuilder builder;
  builder.json["tunables"]["BLOCKS"] = {false, true};
  builder.json["default"] = {{{"THREADS", 64}, {"VECTOR", 2}, {"BLOCKS", true}}};
  const auto spec = builder.parse();
  CHECK(spec->tunables[2].values == std::vector<std::int64_t>{0, 1});
  CHECK(to_string(spec->defaults[0]) == "THREADS=64,VECTOR=2,BLOCKS=1");
  builder.json["tunables"]["BLOCKS"] = {0, false};
  CHECK_THROWS_WITH(builder.parse(), Catch::Contains("0 is listed twice"));
}

TEST_CASE("several launches with scratch that depends on tunables are accepted") {
  SpecBuilder builder;
  builder.json["arguments"]["partial"] = {{"buffer", "f32"}, {"extent", "N * BLOCKS"}, {"role", "scratch"}};
  OrderedJson second = builder.json["launches"][0];
  second["arguments"] = {"x", "y", "n", "alpha", "partial"};
  second["shared_bytes"] = "THREADS * 4";
  builder.json["launches"].push_back(second);
  const auto spec = builder.parse();
  CHECK(spec->launches.size() == 2);
  CHECK(spec->argument("partial")->role == Role::Scratch);
  CHECK(spec->launches[1].shared_bytes == "THREADS * 4");
}

namespace {

// The scale kernel with a filter in a variable.
void add_filter(OrderedJson& json) {
  json["arguments"]["w"] = {{"buffer", "T"}, {"extent", "9"}, {"role", "in"}, {"symbol", "filter<{T}>"}};
  json["launches"][0]["arguments"].push_back("w");
}

}  // namespace

TEST_CASE("the content of a variable is an argument and its name is compiled with the entries") {
  SpecBuilder builder;
  add_filter(builder.json);
  const auto spec = builder.parse();
  const Problem problem = problem_of(*spec, "N=100,D=64,T=bf16");
  const PlanTemplate plan = spec->plan_template(problem, spec->defaults[0]);
  CHECK(plan.launches[0].parameters.back().source == ParameterSource::Symbol);
  CHECK(plan.launches[0].parameters.back().variable == "filter<__nv_bfloat16>");
  CHECK(artifact_source(*spec, problem, spec->defaults[0], "sm_90").entries ==
        std::vector<std::string>{"scale<__nv_bfloat16, 256, 4>", "&filter<__nv_bfloat16>"});
  CHECK(reference_artifact_source(*spec, problem, "sm_90").entries.size() == 1);
}

TEST_CASE("a variable may be scratch") {
  CHECK(refusal([](OrderedJson& json) {
          add_filter(json);
          json["arguments"]["w"]["role"] = "scratch";
        }).empty());
}

TEST_CASE("a shape stands instead of an extent or agrees with it") {
  SpecBuilder builder;
  builder.json["arguments"]["x"]["shape"] = {"N", "D"};
  builder.json["arguments"]["y"].erase("extent");
  builder.json["arguments"]["y"]["shape"] = {"2 * N", 3, "D"};
  const auto spec = builder.parse();
  CHECK(spec->argument("x")->shape == std::vector<std::string>{"N", "D"});
  CHECK(spec->argument("y")->extent == "(2 * N)*3*D");
}

TEST_CASE("a shape that no problem of the spec tells from its extent is accepted") {
  CHECK(refusal([](OrderedJson& json) {
          json["constraints"].push_back("D % 64 == 0");
          json["arguments"]["x"]["shape"] = {"N", "D / 64", "64"};
        }).empty());
}

TEST_CASE("the extent that follows from a shape is an expression as well and as limited") {
  CHECK_THAT(refusal([](OrderedJson& json) {
               json["arguments"]["x"].erase("extent");
               json["arguments"]["x"]["shape"] =
                   OrderedJson(std::vector<std::string>(2, "N" + std::string(900, ' ')));
             }),
             Catch::Contains("/arguments/x/shape: the product of the axes: "));
}

TEST_CASE("every fill is read with its parameters") {
  const auto fill = [](const OrderedJson& json) {
    SpecBuilder builder;
    builder.json["arguments"]["x"]["fill"] = json;
    return builder.parse()->argument("x")->fill;
  };
  CHECK(fill("normal") == Fill{Fill::Kind::Normal, {0, 1}, ""});
  CHECK(fill("uniform") == Fill{Fill::Kind::Uniform, {0, 1}, ""});
  CHECK(fill({{"uniform", {{"low", -2}}}}) == Fill{Fill::Kind::Uniform, {-2, 1}, ""});
  CHECK(fill({{"constant", 7}}) == Fill{Fill::Kind::Constant, {7}, ""});
  CHECK(fill({{"iota", {{"start", 3}, {"step", 2}}}}) == Fill{Fill::Kind::Iota, {3, 2}, ""});
  CHECK(fill("permutation") == Fill{Fill::Kind::Permutation, {}, ""});
  CHECK(fill({{"choice", {{"count", "N"}, {"zipf", 1.2}}}}) == Fill{Fill::Kind::Choice, {1.2}, "N"});
  CHECK(fill({{"offsets", {{"total", "N*D"}}}}) == Fill{Fill::Kind::Offsets, {}, "N*D"});
  CHECK(fill({{"offsets", {{"total", "N"}, {"sigma", "D"}}}}).sigma == "D");
}

TEST_CASE("an integer input has the fill that it is given") {
  CHECK(refusal([](OrderedJson& json) {
          json["arguments"]["index"] = {
              {"buffer", "i32"}, {"extent", "N"}, {"role", "in"}, {"fill", "permutation"}};
          json["launches"][0]["arguments"].push_back("index");
        }).empty());
}

TEST_CASE("a reference is a kernel or the default configuration") {
  SpecBuilder builder;
  CHECK(builder.parse()->reference.kind == ReferenceSpec::Kind::Kernel);
  builder.json["reference"] = "default";
  CHECK(builder.parse()->reference.kind == ReferenceSpec::Kind::Default);
}

TEST_CASE("the reference lies in the kernel's source where no other is named") {
  SpecBuilder builder;
  builder.json["reference"].erase("source");
  CHECK(builder.parse()->reference.source == "kernel.cu");
}

TEST_CASE("types are accepted in the spellings of torch and NumPy and Triton") {
  SpecBuilder builder;
  builder.json["problem"]["types"]["T"] = {"torch.float32", "tl.bfloat16"};
  builder.json["tolerance"] = {{"float32", {{"rtol", 0}, {"atol", 0}}},
                               {"np.float64", {{"rtol", 0}, {"atol", 0}}},
                               {"bfloat16", {{"rtol", 0}, {"atol", 0}}}};
  builder.json["arguments"]["n"]["scalar"] = "int64";
  const auto spec = builder.parse();
  CHECK(spec->types[0].choices == std::vector<DType>{DType::F32, DType::Bf16});
  CHECK(spec->argument("n")->type == "i64");
  CHECK(spec->tolerance("y", DType::F64) != nullptr);
}

TEST_CASE("options are canonical and architecture features are off by default") {
  SpecBuilder builder;
  CHECK(!builder.parse()->arch_features);
  builder.json["options"] = {"-use_fast_math", "-lineinfo"};
  builder.json["arch_features"] = true;
  const auto spec = builder.parse();
  CHECK(spec->options == std::vector<std::string>{"--generate-line-info", "--use_fast_math"});
  CHECK(spec->arch_features);
}

TEST_CASE("an option may hold a tunable whose every value the allow-list has") {
  CHECK(refusal([](OrderedJson& json) {
          json["tunables"]["R"] = {32, 255};
          for (auto& configuration : json["default"]) {
            configuration["R"] = 32;
          }
          json["options"] = {"-maxrregcount={R}"};
        }).empty());
}

TEST_CASE("an output may have a tolerance of its own for one of its types or for all") {
  CHECK(refusal([](OrderedJson& json) {
          json["tolerance"]["outputs"]["y"]["bf16"] = {{"rtol", 0}, {"atol", 0}};
        }).empty());
  CHECK(refusal([](OrderedJson& json) {
          json["tolerance"]["outputs"]["y"] = json["tolerance"];
          json["tolerance"].erase("f32");
          json["tolerance"].erase("bf16");
        }).empty());
}

TEST_CASE("the counts of dims and tunables and values are limited") {
  const auto many = [](OrderedJson& object, std::size_t count, const OrderedJson& value) {
    for (std::size_t i = 0; i < count; ++i) {
      object["Z" + std::to_string(i)] = value;
    }
  };
  CHECK_THAT(refusal([&](OrderedJson& json) { many(json["problem"]["dims"], 15, "d"); }),
             Catch::Contains("/problem/dims: 17 dims, at most 16 are allowed"));
  CHECK_THAT(refusal([&](OrderedJson& json) { many(json["tunables"], 30, {1}); }),
             Catch::Contains("/tunables: 33 tunables, at most 32 are allowed"));
  CHECK_THAT(refusal([&](OrderedJson& json) {
               for (int i = 1000; i < 1300; ++i) {
                 json["tunables"]["THREADS"].push_back(i);
               }
             }),
             Catch::Contains("/tunables/THREADS: 303 values, at most 256 are allowed"));
}

TEST_CASE("a file of the bundle outside of the spec's folder lies in one of its headers folders") {
  SpecBuilder builder;
  builder.files.push_back({"../other/x.cuh", ""});
  CHECK_THROWS_WITH(builder.parse(),
                    Catch::Contains("it lies outside of the spec's folder and in none of /headers"));
  builder.json["headers"] = {"../other"};
  CHECK_NOTHROW(builder.parse());
  builder.files.push_back({"/etc/passwd", ""});
  CHECK_THROWS_WITH(builder.parse(),
                    Catch::Contains("a path is relative to the spec's folder and normalized"));
}

TEST_CASE("an output may be partial, and so by sums") {
  SpecBuilder builder;
  builder.json["arguments"]["y"]["partial"] = true;
  CHECK(builder.parse()->argument("y")->partial);
  CHECK_FALSE(builder.parse()->argument("y")->partial_sums);
  builder.json["arguments"]["y"]["partial"] = "sums";
  CHECK(builder.parse()->argument("y")->partial);
  CHECK(builder.parse()->argument("y")->partial_sums);
}

}  // namespace cubind::test
