#include <catch2/catch.hpp>

#include "base/error.hpp"
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
  try {
    builder.parse();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::InvalidArgument);
    return error.what();
  }
  return "";
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
}

TEST_CASE("a default is put in declared order") {
  SpecBuilder builder;
  builder.json["default"] = {{{"BLOCKS", 1}, {"VECTOR", 2}, {"THREADS", 64}}};
  CHECK(to_string(builder.parse()->defaults[0]) == "THREADS=64,VECTOR=2,BLOCKS=1");
}

TEST_CASE("scalars alone may be bool or unsigned or of 16 bits") {
  SpecBuilder builder;
  builder.json["arguments"]["n"]["scalar"] = "uint32";
  CHECK(builder.parse()->argument("n")->type == "u32");
  CHECK_THAT(refusal([](OrderedJson& json) { json["arguments"]["x"]["buffer"] = "u32"; }),
             Catch::StartsWith("scale.json /arguments/x/buffer: \"u32\" is a type of scalars alone"));
  CHECK_THAT(refusal([](OrderedJson& json) { json["problem"]["types"]["T"] = {"u32"}; }),
             Catch::Contains("is not a type"));
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

TEST_CASE("an input that may be left out is one with a flag in its extent") {
  CHECK_THAT(refusal([](OrderedJson& json) { json["arguments"]["x"]["optional"] = true; }),
             Catch::StartsWith("scale.json /arguments/x/optional: ") && Catch::Contains("BIAS * D"));
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
void add_filter(OrderedJson& json, const std::string& symbol = "filter<{T}>") {
  json["arguments"]["w"] = {{"buffer", "T"}, {"extent", "9"}, {"role", "in"}, {"symbol", symbol}};
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

TEST_CASE("a variable is an input or scratch and is named without its address") {
  const auto refused = [](const std::string& key, const std::string& value) {
    return refusal([&](OrderedJson& json) {
      add_filter(json);
      json["arguments"]["w"][key] = value;
    });
  };
  CHECK(refused("role", "scratch").empty());
  for (const char* role : {"out", "inout", "zero"}) {
    CHECK_THAT(refused("role", role), Catch::StartsWith("scale.json /arguments/w/symbol: ") &&
                                          Catch::Contains("pass an output as a parameter"));
  }
  CHECK_THAT(refused("symbol", "&w"), Catch::Contains("expected the name of a __constant__ or __device__"));
  CHECK_THAT(refused("symbol", "w<{WIDTH}>"), Catch::Contains("{WIDTH} names nothing that is compiled in"));
}

TEST_CASE("a variable has the content of one argument and the reference's of no tunable") {
  CHECK_THAT(refusal([](OrderedJson& json) {
               add_filter(json);
               json["arguments"]["v"] = json["arguments"]["w"];
             }),
             Catch::Contains("the variable has the content of \"w\" already"));
  CHECK_THAT(refusal([](OrderedJson& json) {
               add_filter(json, "filter<{VECTOR}>");
               json["reference"]["launches"][0]["arguments"].push_back("w");
             }),
             Catch::Contains("{VECTOR} is a tunable"));
}

TEST_CASE("what the caller owns has no extent that depends on tunables") {
  CHECK_THAT(refusal([](OrderedJson& json) { json["arguments"]["y"]["extent"] = "N * BLOCKS"; }),
             Catch::StartsWith("scale.json /arguments/y/extent: ") && Catch::Contains("BLOCKS"));
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

TEST_CASE("a shape is refused where a problem tells it from its extent") {
  const auto with = [](const OrderedJson& shape) {
    return refusal([&](OrderedJson& json) { json["arguments"]["x"]["shape"] = shape; });
  };
  CHECK_THAT(with({"N", "N"}), Catch::StartsWith("scale.json /arguments/x/shape: [") &&
                                   Catch::Contains("elements of the extent \"N*D\" where D = "));
  CHECK_THAT(with({"N", "D / 64", "64"}), Catch::Contains("elements of the extent"));
  CHECK_THAT(with({"N", "D * BLOCKS"}), Catch::StartsWith("scale.json /arguments/x/shape/1: "));
  CHECK_THAT(with({"1", "1", "1", "1", "1", "1", "1", "N", "D"}), Catch::Contains("9 axes, at most 8"));
  CHECK_THAT(with(OrderedJson::array()), Catch::Contains("must not be empty"));
}

TEST_CASE("a buffer without a shape and an extent says what it needs") {
  CHECK_THAT(refusal([](OrderedJson& json) { json["arguments"]["x"].erase("extent"); }),
             Catch::StartsWith("scale.json /arguments/x: a buffer has a \"shape\", as in [\"N\", \"D\"]"));
  CHECK_THAT(refusal([](OrderedJson& json) {
               json["arguments"]["x"].erase("extent");
               json["arguments"]["x"]["shape"] =
                   OrderedJson(std::vector<std::string>(2, "N" + std::string(900, ' ')));
             }),
             Catch::Contains("/arguments/x/shape: the product of the axes: "));
}

TEST_CASE("the reference is given nothing that depends on tunables") {
  CHECK_THAT(refusal([](OrderedJson& json) { json["arguments"]["n"]["expr"] = "N * BLOCKS"; }),
             Catch::StartsWith(
                 "scale.json /reference/launches/0/arguments/2: \"n\" depends on the tunable \"BLOCKS\""));
}

TEST_CASE("what must be a list or an object is reported as what it must be") {
  CHECK(refusal([](OrderedJson& json) { json["tunables"]["SPLIT"] = "x"; }) ==
        "scale.json /tunables/SPLIT: expected an array, found a string");
  CHECK(refusal([](OrderedJson& json) {
          json["tunables"]["SPLIT"] = {{"a", 1}};
        }) == "scale.json /tunables/SPLIT: expected an array, found an object");
  CHECK(refusal([](OrderedJson& json) { json["tunables"] = 3; }) ==
        "scale.json /tunables: expected an object with the tunables by name, {\"NAME\": ...}, found an "
        "integer");
  CHECK(
      refusal([](OrderedJson& json) {
        json["problem"]["dims"] = {"N", "D"};
      }) ==
      "scale.json /problem/dims: expected an object with the dims by name, {\"NAME\": ...}, found an array");
  CHECK(refusal([](OrderedJson& json) { json["launches"][0]["grid"] = "N"; }) ==
        "scale.json /launches/0/grid: expected an array, found a string");
  CHECK(refusal([](OrderedJson& json) { json["constraints"] = "N > 0"; }) ==
        "scale.json /constraints: expected an array, found a string");
  CHECK(refusal([](OrderedJson& json) { json["problem"]["types"]["T"] = "f32"; }) ==
        "scale.json /problem/types/T: expected an array, found a string");
}

TEST_CASE("tolerances that are wrong or missing are reported with how they are written") {
  CHECK_THAT(refusal([](OrderedJson& json) {
               json["tolerance"] = {{"rtol", 1e-3}, {"atol", 1e-3}};
             }),
             Catch::StartsWith("scale.json /tolerance/rtol: \"rtol\" is not a type") &&
                 Catch::EndsWith(
                     ": tolerances are by element type, as in {\"f32\": {\"rtol\": 1e-5, \"atol\": 1e-6}}"));
  CHECK(
      refusal([](OrderedJson& json) { json["tolerance"].erase("bf16"); }) ==
      "scale.json /problem/types/T/1: bf16 has no tolerance in /tolerance, as in \"bf16\": {\"rtol\": 1e-3, "
      "\"atol\": 1e-5}");
  CHECK(refusal([](OrderedJson& json) { json["arguments"]["y"]["buffer"] = "i32"; }) ==
        "scale.json /arguments/y/buffer: i32 has no tolerance in /tolerance, as in \"i32\": {\"rtol\": 0, "
        "\"atol\": 0}");
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

TEST_CASE("a fill without its values says which are needed") {
  CHECK_THAT(refusal([](OrderedJson& json) { json["arguments"]["x"]["fill"] = "choice"; }),
             Catch::StartsWith("scale.json /arguments/x/fill: choice needs its values, as in {\"choice\""));
}

TEST_CASE("an integer input needs a fill of its own") {
  const auto add = [](OrderedJson& json, const char* fill) {
    json["arguments"]["index"] = {{"buffer", "i32"}, {"extent", "N"}, {"role", "in"}};
    if (fill != nullptr) {
      json["arguments"]["index"]["fill"] = fill;
    }
    json["launches"][0]["arguments"].push_back("index");
  };
  CHECK_THAT(refusal([&](OrderedJson& json) { add(json, nullptr); }),
             Catch::Contains("an integer input needs a fill"));
  CHECK(refusal([&](OrderedJson& json) { add(json, "permutation"); }).empty());
}

TEST_CASE("a reference is a kernel or the default configuration") {
  SpecBuilder builder;
  CHECK(builder.parse()->reference.kind == ReferenceSpec::Kind::Kernel);
  builder.json["reference"] = "default";
  CHECK(builder.parse()->reference.kind == ReferenceSpec::Kind::Default);
  builder.json["reference"] = {{"expected", "out.safetensors"}};
  CHECK_THROWS_WITH(builder.parse(),
                    Catch::StartsWith("scale.json /reference/expected: not supported yet: inputs"));
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

TEST_CASE("two spellings of one type are one type") {
  CHECK_THAT(refusal([](OrderedJson& json) {
               json["problem"]["types"]["T"] = {"f32", "torch.float32"};
             }),
             Catch::Contains("/problem/types/T/1: f32 is listed twice"));
  CHECK_THAT(refusal([](OrderedJson& json) {
               json["tolerance"]["float32"] = {{"rtol", 0}, {"atol", 0}};
             }),
             Catch::Contains("/tolerance/float32: f32 has a tolerance already"));
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
  const auto with = [](const OrderedJson& values, const OrderedJson& options) {
    return refusal([&](OrderedJson& json) {
      json["tunables"]["R"] = values;
      for (auto& configuration : json["default"]) {
        configuration["R"] = values[0];
      }
      json["options"] = options;
    });
  };
  CHECK(with({32, 255}, {"-maxrregcount={R}"}).empty());
  CHECK_THAT(with({32, 8}, {"--maxrregcount={R}"}),
             Catch::Contains("/options/0: the option \"--maxrregcount=8\" must be --maxrregcount=16..255"));
  CHECK_THAT(
      with({32, 64}, {"--maxrregcount={R}", "--maxrregcount=32"}),
      Catch::Contains("/options/1: the option \"--maxrregcount=32\" contradicts \"--maxrregcount=64\""));
  CHECK_THAT(with({32}, {"--maxrregcount={N}"}),
             Catch::Contains("/options/0: an option has one placeholder"));
  CHECK_THAT(with({32}, {"--{R}"}), Catch::Contains("/options/0: the option \"--32\" is not allowed"));
}

TEST_CASE("choices that are no integers say how to number them") {
  CHECK_THAT(refusal([](OrderedJson& json) {
               json["tunables"]["VECTOR"] = {1, "wide"};
             }),
             Catch::StartsWith(
                 "scale.json /tunables/VECTOR/1: a tunable's values are integers: number the choices"));
  CHECK_THAT(refusal([](OrderedJson& json) { json["scenarios"] = OrderedJson::object(); }),
             Catch::StartsWith("scale.json /scenarios: not supported yet: data of another kind"));
}

TEST_CASE("a compiled-in dim must appear in an entry or define") {
  CHECK_THAT(refusal([](OrderedJson& json) { json["specialize"] = {"D"}; }),
             Catch::StartsWith("scale.json /specialize/0: no entry or define has {D}"));
}

TEST_CASE("a dim or type or flag that nothing uses is refused") {
  CHECK_THAT(refusal([](OrderedJson& json) { json["problem"]["dims"]["M"] = "more"; }),
             Catch::StartsWith("scale.json /problem/dims/M: nothing uses the dim"));
  CHECK_THAT(refusal([](OrderedJson& json) { json["problem"]["types"]["U"] = {"f32"}; }),
             Catch::StartsWith("scale.json /problem/types/U: nothing uses the type"));
  CHECK_THAT(refusal([](OrderedJson& json) {
               json["problem"]["flags"] = {{"FAST", 0}};
             }),
             Catch::StartsWith("scale.json /problem/flags/FAST: nothing uses the flag"));
}

TEST_CASE("a tunable in constraints alone would give two configurations one trial key and is refused") {
  CHECK_THAT(refusal([](OrderedJson& json) {
               json["tunables"]["EXTRA"] = {1, 2};
               for (auto& configuration : json["default"]) {
                 configuration["EXTRA"] = 1;
               }
               json["constraints"].push_back("EXTRA < 3");
             }),
             Catch::StartsWith("scale.json /tunables/EXTRA: "));
}

TEST_CASE("an output of a fixed type needs a tolerance as a listed type does") {
  CHECK_THAT(refusal([](OrderedJson& json) { json["arguments"]["y"]["buffer"] = "f16"; }),
             Catch::StartsWith("scale.json /arguments/y/buffer: f16 has no tolerance"));
}

TEST_CASE("a tolerance of an unknown form says which there are") {
  const auto with = [](const OrderedJson& atol) {
    return refusal([&](OrderedJson& json) { json["tolerance"]["f32"]["atol"] = atol; });
  };
  const auto forms = Catch::StartsWith("scale.json /tolerance/f32/atol: expected a number, {\"factor\"");
  CHECK_THAT(with("1e-3"), forms);
  CHECK_THAT(with({{"factor", 1}}), forms);
  CHECK_THAT(with({{"factor", 1}, {"times", "N"}, {"sqrt", "N"}}), forms);
  CHECK_THAT(with({{"times", "N"}}), Catch::Contains("/tolerance/f32/atol: the key \"factor\" is missing"));
  CHECK_THAT(with({{"factor", -1}, {"times", "N"}}), Catch::Contains("a tolerance is not negative"));
  CHECK_THAT(with({{"factor", 1}, {"times", "VECTOR"}}), Catch::Contains("/tolerance/f32/atol/times: "));
}

TEST_CASE("a tolerance of an output names an output and a type that it may have") {
  const auto with = [](const char* output, const char* type) {
    return refusal([&](OrderedJson& json) {
      json["tolerance"]["outputs"][output][type] = {{"rtol", 0}, {"atol", 0}};
    });
  };
  CHECK(with("y", "bf16").empty());
  CHECK_THAT(with("x", "bf16"), Catch::Contains("/tolerance/outputs/x: \"x\" is not an output"));
  CHECK_THAT(with("y", "f64"), Catch::Contains("/tolerance/outputs/y/f64: \"y\" is never of this type"));
}

TEST_CASE("outputs that all have their own tolerance need none of their type") {
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

TEST_CASE("a spec that leads elsewhere by a headers folder must name it relative to its own") {
  CHECK_THAT(refusal([](OrderedJson& json) { json["headers"] = {"/usr/include"}; }),
             Catch::Contains("/headers/0: \"/usr/include\" is absolute"));
}

TEST_CASE("a floating scalar is no quotient of integers") {
  SpecBuilder builder;
  builder.json["arguments"]["inverse"] = {{"scalar", "f32"}, {"expr", "1 / N"}};
  CHECK_THROWS_WITH(builder.parse(), Catch::Contains("/arguments/inverse/expr") &&
                                         Catch::Contains("expressions are integers"));
}

TEST_CASE("only a buffer of role out can be partial") {
  SpecBuilder builder;
  builder.json["arguments"]["y"]["partial"] = true;
  CHECK(builder.parse()->argument("y")->partial);
  CHECK_FALSE(builder.parse()->argument("y")->partial_sums);
  builder.json["arguments"]["y"]["partial"] = "sums";
  CHECK(builder.parse()->argument("y")->partial);
  CHECK(builder.parse()->argument("y")->partial_sums);
  builder.json["arguments"]["x"]["partial"] = true;
  CHECK_THROWS_WITH(builder.parse(),
                    Catch::Contains("/arguments/x/partial") && Catch::Contains("only a buffer of role out"));
}

TEST_CASE("only an output can be constant") {
  SpecBuilder builder;
  builder.json["arguments"]["x"]["constant_output"] = true;
  CHECK_THROWS_WITH(builder.parse(),
                    Catch::Contains("/arguments/x/constant_output") && Catch::Contains("only an output"));
}

TEST_CASE("what a constraint may name is listed with the tunables first") {
  CHECK_THAT(refusal([](OrderedJson& json) { json["constraints"] = {"WARPS * 32 <= 1024"}; }),
             Catch::Contains("(known: \"THREADS\", \"VECTOR\", \"BLOCKS\", \"N\", \"D\""));
}

}  // namespace cubind::test
