#include "tuner/spec/kernel_spec.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/refusal_of.hpp"
#include "tests/unit/spec/spec_builder.hpp"

namespace cubind::test {
using test::SpecBuilder;

namespace {

std::string refusal(const KernelSpec& spec, const std::string& problem) {
  const auto error = error_of([&] { spec.canonicalize(parse_problem(problem), "shapes.json /3"); });
  CHECK((!error || error->where() == "shapes.json /3"));
  return error ? error->cause() : "";
}

BucketRule edges(std::vector<std::int64_t> values) { return {BucketRule::Kind::Edges, std::move(values)}; }

using Interval = BucketRule::Interval;

}  // namespace

TEST_CASE("a problem is put in declared order whatever the order of its writing") {
  SpecBuilder builder;
  builder.json["problem"]["flags"] = {{"CAUSAL", true}, {"SHIFT", 0}};
  builder.json["launches"][0]["entry"] = "scale<{T}, {THREADS}, {VECTOR}, {CAUSAL}, {SHIFT}>";
  const auto spec = builder.parse();
  const Problem problem = spec->canonicalize(parse_problem("T=torch.bfloat16,SHIFT=3,D=8,N=4"), "problem");
  CHECK(to_string(problem) == "N=4,D=8,T=bf16,CAUSAL=1,SHIFT=3");
  CHECK(spec->canonicalize(problem, "problem") == problem);
}

TEST_CASE("a problem that the spec does not know is refused with what would be right") {
  const auto spec = SpecBuilder().parse();
  CHECK(refusal(*spec, "N=4,D=8,T=bf16").empty());
  CHECK_THAT(refusal(*spec, "N=4,T=bf16"), Catch::Contains("the dim \"D\" of scale is missing (columns)"));
  CHECK_THAT(refusal(*spec, "N=4,D=8"),
             Catch::Contains("the type \"T\" of scale is missing (one of f32, bf16)"));
  CHECK_THAT(refusal(*spec, "N=4,D=8,T=f16"),
             Catch::Contains("T = f16 is not listed by scale (one of f32, bf16)"));
  CHECK_THAT(refusal(*spec, "N=4,D=8,T=f32,M=1"), Catch::Contains("\"M\" is not a dim of scale"));
  CHECK_THAT(refusal(*spec, "N=0,D=8,T=f32"), Catch::Contains("N = 0 is not in 1 to 2^48"));
  CHECK_THAT(refusal(*spec, "N=281474976710657,D=8,T=f32"), Catch::Contains("is not in 1 to 2^48"));
  CHECK_THAT(refusal(*spec, "N=4,D=8,T=f32,scenario=skewed"), Catch::Contains("is not a scenario"));
}

TEST_CASE("a dim may be zero only where the spec says so") {
  SpecBuilder builder;
  builder.json["problem"]["dims"]["N"] = {{"description", "rows"}, {"min", 0}};
  const auto spec = builder.parse();
  CHECK(spec->canonicalize(parse_problem("N=0,D=8,T=f32"), "problem").dims[0].value == 0);
  CHECK_THAT(refusal(*spec, "N=-1,D=8,T=f32"), Catch::Contains("N = -1 is not in 0 to 2^48"));
}

TEST_CASE("a configuration has each tunable once with a listed value") {
  const auto spec = SpecBuilder().parse();
  const Configuration shuffled{{{"VECTOR", 2}, {"BLOCKS", 1}, {"THREADS", 64}}};
  CHECK(to_string(spec->canonicalize(shuffled, "configuration")) == "THREADS=64,VECTOR=2,BLOCKS=1");
  const auto refused = [&](const Configuration& configuration) {
    CHECK_THROWS_AS(spec->canonicalize(configuration, "configuration"), Error);
  };
  refused({{{"VECTOR", 2}, {"BLOCKS", 1}}});
  refused({{{"VECTOR", 3}, {"BLOCKS", 1}, {"THREADS", 64}}});
  refused({{{"VECTOR", 2}, {"BLOCKS", 1}, {"THREADS", 64}, {"UNROLL", 1}}});
  refused({{{"VECTOR", 2}, {"VECTOR", 2}, {"BLOCKS", 1}, {"THREADS", 64}}});
}

TEST_CASE("an exact dim is a bucket of its own") {
  CHECK(BucketRule{}.interval(1000) == Interval{1000, 1000});
}

TEST_CASE("buckets of powers of two round up") {
  const BucketRule rule{BucketRule::Kind::Pow2, {}};
  CHECK(rule.interval(0) == Interval{0, 0});
  CHECK(rule.interval(1) == Interval{1, 1});
  CHECK(rule.interval(2) == Interval{2, 2});
  CHECK(rule.interval(3) == Interval{3, 4});
  CHECK(rule.interval(4096) == Interval{2049, 4096});
  CHECK(rule.interval(4097) == Interval{4097, 8192});
}

TEST_CASE("buckets by edges round up and are exact above the last edge") {
  const BucketRule rule = edges({1, 4, 16, 64});
  CHECK(rule.interval(1) == Interval{1, 1});
  CHECK(rule.interval(2) == Interval{2, 4});
  CHECK(rule.interval(4) == Interval{2, 4});
  CHECK(rule.interval(17) == Interval{17, 64});
  CHECK(rule.interval(64) == Interval{17, 64});
  CHECK(rule.interval(65) == Interval{65, 65});
}

TEST_CASE("the first bucket spans no more than a factor of four either") {
  const BucketRule rule = edges({64, 256});
  CHECK(rule.interval(64) == Interval{17, 64});
  CHECK(rule.interval(17) == Interval{17, 64});
  CHECK(rule.interval(16) == Interval{16, 16});
}

TEST_CASE("the representative of a problem has every dim at its bucket's upper edge") {
  const auto spec = SpecBuilder().parse();
  const Problem problem = spec->canonicalize(parse_problem("N=100,D=100,T=f32"), "problem");
  CHECK(to_string(spec->representative(problem)) == "N=128,D=100,T=f32");
  CHECK(spec->bucket(problem) == std::vector<Interval>{{65, 128}, {100, 100}});
}

TEST_CASE("the distance of two problems is the sum of the absolute log2 ratios of their dims") {
  const auto distance = [](const char* a, const char* b) {
    return KernelSpec::distance(parse_problem(a), parse_problem(b));
  };
  CHECK(distance("N=4,D=8,T=f32", "N=8,D=2,T=f32").value() == Approx(3));
  CHECK(distance("N=4,D=8,T=f32", "N=4,D=8,T=f32").value() == 0);
  CHECK(!distance("N=4,D=8,T=f32", "N=4,D=8,T=bf16"));
  CHECK(!distance("N=0,D=8,T=f32", "N=4,D=8,T=f32"));
  CHECK(!distance("N=4,T=f32", "N=4,D=8,T=f32"));
}

TEST_CASE("entries are written with types and tunables and flags and compiled-in dims") {
  SpecBuilder builder;
  builder.json["specialize"] = {"D"};
  builder.json["problem"]["flags"] = {{"CAUSAL", false}};
  builder.json["launches"][0]["entry"] = "scale<{T}, {THREADS}, {VECTOR}, {D}, {CAUSAL}>";
  const auto spec = builder.parse();
  const Problem problem = spec->canonicalize(parse_problem("N=4,D=8,T=bf16"), "problem");
  const PlanTemplate plan = spec->plan_template(problem, {{{"THREADS", 64}, {"VECTOR", 2}, {"BLOCKS", 1}}});
  CHECK(plan.launches.at(0).entry == "scale<__nv_bfloat16, 64, 2, 8, 0>");
  CHECK(spec->reference_template(problem).launches.at(0).entry == "scale_reference<__nv_bfloat16>");
}

TEST_CASE("a plan has every parameter with its kind and type and source") {
  const auto spec = SpecBuilder().parse();
  const Problem problem = spec->canonicalize(parse_problem("N=3,D=5,T=bf16"), "problem");
  const Configuration configuration{{{"THREADS", 64}, {"VECTOR", 1}, {"BLOCKS", 1}}};
  const PlanEvaluator evaluator(spec->plan_template(problem, configuration), problem, configuration,
                                test::h200());
  const LaunchPlan plan = evaluator.evaluate(problem, configuration).plan.value();
  const auto& parameters = plan.launches.at(0).parameters;
  REQUIRE(parameters.size() == 4);
  CHECK(parameters[0] == Parameter{"x", ParameterSource::Buffer, DType::Bf16, Role::In, 30, 16, 0});
  CHECK(parameters[2] == Parameter{"n", ParameterSource::Value, DType::I64, Role::None, 0, 0, 15});
  CHECK(parameters[3] == Parameter{"alpha", ParameterSource::Caller, DType::F32, Role::None, 0, 0, 0});
}

TEST_CASE("a fill by expression is evaluated for the problem") {
  SpecBuilder builder;
  builder.json["arguments"]["x"]["fill"] = {{"choice", {{"count", "N * 2"}, {"zipf", 1.5}}}};
  const auto spec = builder.parse();
  const Problem problem = spec->canonicalize(parse_problem("N=3,D=5,T=f32"), "problem");
  const Fill fill = spec->resolved_fill(*spec->argument("x"), problem);
  CHECK(fill.kind == Fill::Kind::Choice);
  CHECK(fill.parameters == std::vector<double>{6, 1.5});
}

TEST_CASE("the sigma of offsets is evaluated for the problem") {
  SpecBuilder builder;
  builder.json["arguments"]["x"]["fill"] = {{"offsets", {{"total", "N * 2"}, {"sigma", "D - 5"}}}};
  const auto spec = builder.parse();
  const Problem problem = spec->canonicalize(parse_problem("N=3,D=5,T=f32"), "problem");
  CHECK(spec->resolved_fill(*spec->argument("x"), problem).parameters == std::vector<double>{6, 0});
}

TEST_CASE("a tolerance of the problem is evaluated for the output's type and the problem") {
  SpecBuilder builder;
  builder.json["tolerance"] = {
      {"f32", {{"rtol", {{"factor", 0.5}, {"times", "N * sizeof(T)"}}}, {"atol", 3}}},
      {"bf16", {{"rtol", 0}, {"atol", {{"factor", 0.25}, {"sqrt", "N + D"}}}}}};
  const auto spec = builder.parse();
  const auto bounds = [&](const char* problem) {
    return spec->bounds(*spec->argument("y"), problem_of(*spec, problem));
  };
  CHECK(bounds("N=3,D=13,T=f32") == ToleranceBounds{6, 3});
  CHECK(bounds("N=3,D=13,T=bf16") == ToleranceBounds{0, 1});
}

TEST_CASE("an output's own tolerance comes before that of its type") {
  SpecBuilder builder;
  builder.json["arguments"]["z"] = builder.json["arguments"]["y"];
  builder.json["launches"][0]["arguments"].push_back("z");
  builder.json["reference"]["launches"][0]["arguments"].push_back("z");
  builder.json["tolerance"]["outputs"] = {{"z", {{"bf16", {{"rtol", 0.5}, {"atol", 1}}}}}};
  const auto spec = builder.parse();
  const auto bounds = [&](const char* output, const char* type) {
    return spec->bounds(*spec->argument(output), problem_of(*spec, std::string("N=3,D=5,T=") + type));
  };
  CHECK(bounds("z", "bf16") == ToleranceBounds{0.5, 1});
  CHECK(bounds("y", "bf16") == ToleranceBounds{1e-2, 0});
  CHECK(bounds("z", "f32") == ToleranceBounds{1e-6, 0});
}

TEST_CASE("a tolerance that cannot be evaluated names its place and the problem") {
  const auto bounds = [](const OrderedJson& atol) {
    SpecBuilder builder;
    builder.json["tolerance"]["outputs"] = {{"y", {{"f32", {{"rtol", 0}, {"atol", atol}}}}}};
    const auto spec = builder.parse();
    spec->bounds(*spec->argument("y"), problem_of(*spec, "N=3,D=5,T=f32"));
  };
  CHECK_THROWS_WITH(bounds({{"factor", 1}, {"sqrt", "N - D"}}),
                    "scale.json /tolerance/outputs/y/f32/atol: \"N - D\" is -2 for N=3,D=5,T=f32");
  CHECK_THROWS_WITH(bounds({{"factor", 1}, {"times", "D / (N - 3)"}}),
                    Catch::StartsWith("scale.json /tolerance/outputs/y/f32/atol: "));
}

TEST_CASE("the work of a problem is evaluated from the spec") {
  const auto spec = SpecBuilder().parse();
  const WorkSizes work = spec->work_sizes(spec->canonicalize(parse_problem("N=3,D=5,T=bf16"), "problem"));
  CHECK(work.bytes == 60);
  CHECK(work.min_read_bytes == 30);
  CHECK(work.flops == 15);
}

TEST_CASE("a define names a file for each value of its tunables") {
  SpecBuilder builder;
  builder.json["defines"] = {"TILE=\"tile_{VECTOR}.cuh\""};
  builder.file("kernel.cu").content = "#include TILE\n";
  for (const char* name : {"tile_1.cuh", "tile_8.cuh", "tile_16.cuh"}) {
    builder.files.push_back({name, ""});
  }
  const auto spec = builder.parse();
  REQUIRE(spec->source_digests.includes.size() == 2);
  CHECK(spec->source_digests.includes[0].first == "tile_1.cuh");
  CHECK(spec->source_digests.includes[1].first == "tile_8.cuh");
}

TEST_CASE("the shipped specs are read with the headers that they include") {
  const auto spec = load_kernel_spec((test::source_dir() / "variants/rmsnorm/rmsnorm_forward.json").string());
  CHECK(spec->name == "rmsnorm_forward");
  CHECK(spec->bundled_file("../common/row_reduce.cuh") != nullptr);
  const auto again = parse_kernel_spec(spec->bundle);
  CHECK(again->source_digests == spec->source_digests);
  CHECK(
      load_kernel_spec((test::source_dir() / "variants/vector_add/vector_add.json").string())->dims.size() ==
      1);
}

}  // namespace cubind::test
