#include <catch2/catch.hpp>

#include "base/file.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/triton_spec.hpp"
#include "tests/unit/spec/spec_builder.hpp"
#include "tuner/spec/keys.hpp"

namespace cubind::test {
using test::SpecBuilder;

namespace {

const ToolchainIdentity kToolchain{"nvrtc 13.0", Digest::of("nvrtc"), Digest::of("builtins"),
                                   Digest::of("headers")};

Configuration configuration(std::int64_t threads = 128, std::int64_t vector = 2, std::int64_t blocks = 1) {
  return {{{"THREADS", threads}, {"VECTOR", vector}, {"BLOCKS", blocks}}};
}

struct Question {
  SpecBuilder builder;
  std::string problem = "N=100,D=64,T=f32";
  Configuration configuration = test::configuration();
  std::string architecture = "sm_90";
  ToolchainIdentity toolchain = kToolchain;
  Policy policy{false, 1, false};  // the digests below hold whatever the default is
  std::string driver_branch = "580";
  Digest device_class = Digest::of("device");

  Key artifact() const {
    const auto spec = builder.parse();
    return artifact_key(artifact_source(*spec, problem_of(*spec, problem), configuration, architecture),
                        toolchain);
  }

  Key trial() const {
    const auto spec = builder.parse();
    const Problem asked = problem_of(*spec, problem);
    const PlanEvaluator plan(spec->plan_template(asked, configuration), asked, configuration, test::h200());
    const TrialContext context{spec.get(), asked, device_class, policy, driver_branch};
    return trial_key(context, artifact(), plan.evaluate(asked, configuration).plan.value());
  }

  Digest interface() const { return interface_digest(*builder.parse()); }
  Digest verification() const { return verification_digest(*builder.parse()); }

  RecordQuestion record() const {
    const auto spec = builder.parse();
    return {spec->name, interface(), problem_of(*spec, problem), Digest::of("device"), policy, {}, ""};
  }
};

const NvrtcSource& nvrtc(const ArtifactSource& source) { return std::get<NvrtcSource>(source.code); }

}  // namespace

TEST_CASE("the encodings of all keys are pinned by golden digests") {
  const Question asked;
  const Json golden = Json::parse(read_file(test::source_dir() / "tests/golden/keys.json"));
  CHECK(asked.artifact().digest.hex() == golden.at("artifact").get<std::string>());
  CHECK(asked.trial().digest.hex() == golden.at("trial").get<std::string>());
  CHECK(asked.interface().hex() == golden.at("interface").get<std::string>());
  CHECK(asked.verification().hex() == golden.at("verification").get<std::string>());
  CHECK(record_key(asked.record()).digest.hex() == golden.at("record").get<std::string>());
  const auto spec = asked.builder.parse();
  const auto reference = reference_artifact_source(*spec, problem_of(*spec), "sm_90");
  CHECK(artifact_key(reference, kToolchain).digest.hex() ==
        golden.at("reference_artifact").get<std::string>());
}

TEST_CASE("a key is the digest of its full encoding") {
  const Question asked;
  for (const Key& key : {asked.artifact(), asked.trial(), record_key(asked.record())}) {
    CHECK(Digest::of(key.full) == key.digest);
  }
}

TEST_CASE("an argument that becomes a variable is another artifact and trial of the same interface") {
  Question changed;
  OrderedJson& x = changed.builder.json["arguments"]["x"];
  x["symbol"] = "x<{T}>";
  CHECK(changed.artifact() != Question().artifact());
  CHECK(changed.interface() == Question().interface());
  const Key trial = changed.trial();
  x["symbol"] = "other<{T}>";
  CHECK(changed.trial() != trial);
}

TEST_CASE("each part of what is compiled is in the artifact key") {
  const auto with = [](auto edit) {
    Question changed;
    edit(changed);
    return changed.artifact();
  };
  const Key before = Question().artifact();
  CHECK(with([](Question& question) { question.builder.file("helper.cuh").content += "// more\n"; }) !=
        before);
  CHECK(with([](Question& question) { question.builder.file("kernel.cu").content += "// more\n"; }) !=
        before);
  CHECK(with([](Question& question) { question.builder.json["options"] = {"--use_fast_math"}; }) != before);
  CHECK(with([](Question& question) { question.builder.json["defines"] = {"WIDTH={VECTOR}"}; }) != before);
  CHECK(with([](Question& question) { question.architecture = "sm_90a"; }) != before);
  CHECK(with([](Question& question) { question.configuration = configuration(128, 4); }) != before);
  CHECK(with([](Question& question) { question.problem = "N=100,D=64,T=bf16"; }) != before);
}

TEST_CASE("what changes nothing of a measurement is in no key") {
  const Question before;
  const auto changes_no_key = [&](auto edit) {
    Question edited;
    edit(edited);
    return edited.artifact() == before.artifact() && edited.trial() == before.trial() &&
           edited.interface() == before.interface() && edited.verification() == before.verification();
  };
  CHECK(changes_no_key([](Question& edited) { edited.toolchain.name = "nvrtc 13.0 of another folder"; }));
  CHECK(changes_no_key([](Question& edited) {  // a file that nothing includes
    edited.builder.files.push_back({"unrelated.cuh", "// unrelated"});
  }));
  CHECK(changes_no_key([](Question& edited) { edited.builder.json["arguments"]["alpha"]["bench"] = 3; }));
  CHECK(changes_no_key([](Question& edited) {  // the defaults of a fill
    edited.builder.json["arguments"]["x"]["fill"] = {{"normal", {{"mean", 0}, {"stddev", 1}}}};
  }));
  CHECK(changes_no_key([](Question& edited) {  // a shape with an extent, and one instead of it
    OrderedJson& arguments = edited.builder.json["arguments"];
    arguments["x"]["shape"] = {"N", "D"};
    arguments["y"].erase("extent");
    arguments["y"]["shape"] = {"N", "D"};
  }));
  CHECK(changes_no_key([](Question& edited) {  // the order of tolerances
    edited.builder.json["tolerance"] = {{"bf16", {{"rtol", 1e-2}, {"atol", 0}}},
                                        {"f32", {{"rtol", 1e-6}, {"atol", 0}}}};
  }));
}

TEST_CASE("an option with a tunable enters the artifact key as it is expanded") {
  Question tuned, plain;
  tuned.builder.json["options"] = {"-maxrregcount={THREADS}", "--jump-table-density={VECTOR}",
                                   "--use_fast_math"};
  plain.builder.json["options"] = {"--maxrregcount=128", "--use_fast_math", "-jtd=2"};
  tuned.builder.json["tunables"]["THREADS"] = plain.builder.json["tunables"]["THREADS"] = {128, 64};
  for (Question* question : {&tuned, &plain}) {
    question->builder.json["default"] = {{{"THREADS", 128}, {"VECTOR", 4}, {"BLOCKS", 1}}};
  }
  CHECK(tuned.artifact() == plain.artifact());
  const auto spec = tuned.builder.parse();
  CHECK(nvrtc(reference_artifact_source(*spec, problem_of(*spec), "sm_90")).options.empty());
}

TEST_CASE("two spellings and orders of the same options give the same artifact key") {
  Question one;
  one.builder.json["options"] = {"-lineinfo", "--use_fast_math"};
  Question other;
  other.builder.json["options"] = {"--use_fast_math", "--generate-line-info"};
  CHECK(one.artifact() == other.artifact());
}

TEST_CASE("a define is compiled with the values of its tunables") {
  SpecBuilder builder;
  builder.json["defines"] = {"WIDTH={VECTOR}"};
  const auto spec = builder.parse();
  const auto source = artifact_source(*spec, problem_of(*spec), configuration(128, 4), "sm_90");
  CHECK(nvrtc(source).defines == std::vector<std::string>{"WIDTH=4"});
}

TEST_CASE("a macro that comes with an option is in the artifact keys of kernel and reference") {
  Question changed;
  changed.builder.json["options"] = {"--expt-relaxed-constexpr"};
  const auto defines_with = [&](const std::vector<std::string>& own) {
    changed.builder.json["defines"] = own;
    const auto spec = changed.builder.parse();
    return nvrtc(artifact_source(*spec, problem_of(*spec), configuration(128, 4), "sm_90")).defines;
  };
  const std::vector<std::string> with_macro = {"A=1", "__CUDACC_RELAXED_CONSTEXPR__=1"};
  CHECK(defines_with({"A=1"}) == with_macro);
  CHECK(defines_with({"A=1", "__CUDACC_RELAXED_CONSTEXPR__=1"}) == with_macro);
  CHECK(defines_with({"__CUDACC_RELAXED_CONSTEXPR__"}) ==
        std::vector<std::string>{"__CUDACC_RELAXED_CONSTEXPR__"});
  const auto spec = changed.builder.parse();
  CHECK(nvrtc(reference_artifact_source(*spec, problem_of(*spec), "sm_90")).defines ==
        std::vector<std::string>{"__CUDACC_RELAXED_CONSTEXPR__=1"});
}

TEST_CASE("changing one of the NVRTC libraries or the toolkit's headers changes the artifact key") {
  for (Digest ToolchainIdentity::*digest :
       {&ToolchainIdentity::nvrtc, &ToolchainIdentity::builtins, &ToolchainIdentity::headers}) {
    Question changed;
    changed.toolchain.*digest = Digest::of("another");
    CHECK(changed.artifact() != Question().artifact());
  }
}

TEST_CASE("moving the files changes no key") {
  const TempDir here;
  const TempDir there;
  const auto write = [](const std::filesystem::path& folder, const SpecBuilder& builder) {
    for (const SourceFile& file : builder.files) {
      write_file_atomic(folder / file.path, file.content);
    }
    write_file_atomic(folder / "scale.json", builder.json.dump());
    return load_kernel_spec((folder / "scale.json").string());
  };
  const auto spec = write(here.path(), {});
  const auto moved = write(there.path(), {});
  CHECK(spec->source_digests == moved->source_digests);
  CHECK(verification_digest(*spec) == verification_digest(*moved));
  const auto source = artifact_source(*moved, problem_of(*moved), configuration(), "sm_90");
  CHECK(artifact_key(source, kToolchain) == Question().artifact());
}

TEST_CASE("what chooses the default changes what invariant rows were compared with and nothing else") {
  const Numerics invariant{Numerics::Kind::Invariant, "N"};
  const auto spec = SpecBuilder().parse();
  SpecBuilder of_default, of_constraint;
  const auto values = of_default.json["tunables"]["THREADS"];
  OrderedJson& threads = of_default.json["default"][0]["THREADS"];
  threads = values[threads == values[0] ? 1 : 0];
  of_constraint.json["constraints"].push_back("THREADS > 0");
  for (SpecBuilder* builder : {&of_default, &of_constraint}) {
    const auto edited = builder->parse();
    CHECK(verification_digest(*edited, invariant) != verification_digest(*spec, invariant));
    CHECK(verification_digest(*edited, {}) == verification_digest(*spec, {}));
  }
  CHECK(verification_digest(*spec, {}) == verification_digest(*spec));
  CHECK(verification_digest(*spec, invariant) != verification_digest(*spec));
}

TEST_CASE("a header that moves to a headers folder keeps the artifact key") {
  Question moved;
  moved.builder.json["headers"] = {"../common"};
  moved.builder.file("helper.cuh").path = "../common/helper.cuh";
  CHECK(moved.artifact() == Question().artifact());
}

TEST_CASE("two configurations that differ only in a grid share an artifact key and differ in trial key") {
  Question other;
  other.problem = "N=100000,D=64,T=f32";
  Question one = other;
  other.configuration = configuration(128, 2, 2);
  CHECK(one.artifact() == other.artifact());
  CHECK(one.trial() != other.trial());
}

TEST_CASE("editing how a launch is made changes the trial key only") {
  const Question before;
  std::vector<Key> trials{before.trial()};
  for (const OrderedJson& edit : {
           OrderedJson{{"grid", {"min(cdiv(N*D, THREADS*VECTOR), device.sm_count * BLOCKS) + 1"}}},
           OrderedJson{{"cluster", {"1"}}},
           OrderedJson{{"cooperative", true}},
           OrderedJson{{"attributes", {{"programmatic_stream_serialization", true}}}},
           OrderedJson{{"attributes", {{"priority", -1}}}},
       }) {
    INFO(edit);
    Question edited;
    edited.builder.json["launches"][0].update(edit);
    CHECK(edited.artifact() == before.artifact());
    CHECK(std::ranges::find(trials, edited.trial()) == trials.end());
    trials.push_back(edited.trial());
    CHECK(edited.interface() == before.interface());
    CHECK(edited.verification() == before.verification());
  }
}

namespace {

Question question_with_map(const OrderedJson& edit = OrderedJson::object()) {
  Question question;
  OrderedJson& arguments = question.builder.json["arguments"];
  arguments["map"] = {{"tensor_map", "x"}, {"sizes", {"D", "N"}}, {"box", {"VECTOR * 4", "8"}}};
  arguments["map"].update(edit);
  question.builder.json["launches"][0]["arguments"][0] = "map";
  return question;
}

}  // namespace

TEST_CASE("editing a tensor map changes the trial key only") {
  const Question before = question_with_map();
  std::vector<Key> trials{before.trial(), Question().trial()};
  for (const OrderedJson& edit :
       {OrderedJson{{"type", "i32"}}, OrderedJson{{"sizes", {"D", "N - 1"}}},
        OrderedJson{{"strides", {"D * 2"}}}, OrderedJson{{"box", {"VECTOR * 4", "16"}}},
        OrderedJson{{"element_strides", {"1", "2"}}}, OrderedJson{{"swizzle", "32B"}},
        OrderedJson{{"l2_promotion", "128B"}}, OrderedJson{{"fill", "nan"}}}) {
    INFO(edit);
    const Question edited = question_with_map(edit);
    CHECK(edited.artifact() == before.artifact());
    CHECK(std::ranges::find(trials, edited.trial()) == trials.end());
    trials.push_back(edited.trial());
    CHECK(edited.interface() == before.interface());
    CHECK(edited.verification() == before.verification());
  }
}

TEST_CASE("a reference that takes a tensor map is verified again when the map is edited") {
  const auto verification = [](const OrderedJson& edit) {
    Question question = question_with_map({{"box", {"8", "8"}}});
    question.builder.json["arguments"]["map"].update(edit);
    question.builder.json["reference"]["launches"][0]["arguments"][0] = "map";
    return question.verification();
  };
  CHECK(verification(OrderedJson::object()) != verification({{"swizzle", "32B"}}));
}

TEST_CASE("editing a fill changes the trial key only") {
  Question edited;
  edited.builder.json["arguments"]["x"]["fill"] = {{"uniform", {{"low", -1}, {"high", 1}}}};
  CHECK(edited.artifact() == Question().artifact());
  CHECK(edited.trial() != Question().trial());
  CHECK(edited.interface() == Question().interface());
  CHECK(edited.verification() == Question().verification());
}

TEST_CASE("a new tunable changes no interface digest") {
  Question grown;
  grown.builder.json["tunables"]["UNROLL"] = {1, 2};
  grown.builder.json["launches"][0]["entry"] = "scale<{T}, {THREADS}, {VECTOR}, {UNROLL}>";
  for (auto& configuration : grown.builder.json["default"]) {
    configuration["UNROLL"] = 1;
  }
  CHECK(grown.interface() == Question().interface());
}

TEST_CASE("an argument's type or role or alignment or order changes the interface digest") {
  const auto with = [](auto edit) {
    Question changed;
    edit(changed.builder.json["arguments"]);
    return changed.interface();
  };
  const Digest before = Question().interface();
  CHECK(with([](OrderedJson& arguments) { arguments["alpha"]["scalar"] = "f64"; }) != before);
  CHECK(with([](OrderedJson& arguments) { arguments["y"]["role"] = "inout"; }) != before);
  CHECK(with([](OrderedJson& arguments) { arguments["x"]["align"] = 32; }) != before);
  CHECK(with([](OrderedJson& arguments) { std::swap(arguments["x"], arguments["y"]); }) != before);
}

TEST_CASE("editing the tolerance or the reference keeps the trial key and changes the verification digest") {
  Question tolerant, exact;
  tolerant.builder.json["tolerance"]["f32"]["rtol"] = 1e-7;
  exact.builder.file("reference.cu").content += "// exact now\n";
  for (const Question* edited : {&tolerant, &exact}) {
    CHECK(edited->trial() == Question().trial());
    CHECK(edited->verification() != Question().verification());
  }
}

TEST_CASE("each part of a tolerance of the problem and of an output is in the verification digest") {
  const auto with = [](const OrderedJson& atol) {
    Question edited;
    edited.builder.json["tolerance"]["f32"]["atol"] = atol;
    CHECK(edited.trial() == Question().trial());
    return edited.verification();
  };
  const Digest root = with({{"factor", 1e-6}, {"sqrt", "D"}});
  CHECK(root != with(1e-6));
  CHECK(root != with({{"factor", 1e-6}, {"times", "D"}}));
  CHECK(root != with({{"factor", 2e-6}, {"sqrt", "D"}}));
  CHECK(root != with({{"factor", 1e-6}, {"sqrt", "N"}}));
  Question named;
  named.builder.json["tolerance"]["outputs"] = {{"y", {{"f32", {{"rtol", 1e-6}, {"atol", 0}}}}}};
  CHECK(named.verification() != Question().verification());
  CHECK(named.trial() == Question().trial());
}

TEST_CASE(
    "where the default is the reference, all that makes and launches it is in the verification digest") {
  const auto with = [](auto edit) {
    SpecBuilder builder;
    builder.json["reference"] = "default";
    edit(builder);
    return verification_digest(*builder.parse());
  };
  const Digest before = with([](SpecBuilder&) {});
  CHECK(with([](SpecBuilder& b) { b.json["default"][0]["VECTOR"] = 1; }) != before);
  CHECK(with([](SpecBuilder& b) { b.json["options"] = {"--use_fast_math"}; }) != before);
  CHECK(with([](SpecBuilder& b) { b.file("kernel.cu").content += "// another\n"; }) != before);
  CHECK(with([](SpecBuilder& b) { b.json["launches"][0]["shared_bytes"] = "64"; }) != before);
  CHECK(with([](SpecBuilder& b) { b.json["launches"][0]["cluster"] = {"2"}; }) != before);
  CHECK(with([](SpecBuilder& b) { b.json["launches"][0]["cooperative"] = true; }) != before);
  CHECK(with([](SpecBuilder& b) { b.json["name"] = "of_another_name"; }) == before);
}

TEST_CASE("a Triton kernel's first configuration is in its verification digest, and later ones are not") {
  const auto with = [](auto edit) {
    TritonSpec spec;
    edit(spec.json["configurations"]);
    return verification_digest(*spec.parse());
  };
  const Digest before = with([](OrderedJson&) {});
  CHECK(with([](OrderedJson& all) { all.erase(all.size() - 1); }) == before);
  CHECK(with([](OrderedJson& all) { all.erase(0); }) != before);
}

TEST_CASE("kernels have a source digest in common by their source, and Triton kernels by entry and target") {
  SpecBuilder builder;
  const Digest before = source_digest(*builder.parse());
  builder.json["name"] = "of_another_name";
  builder.json["tolerance"]["f32"]["rtol"] = 1e-7;
  CHECK(source_digest(*builder.parse()) == before);
  builder.file("kernel.cu").content += "// another\n";
  CHECK(source_digest(*builder.parse()) != before);
  TritonSpec rows, fewer;
  fewer.json["configurations"].erase(0);
  CHECK(source_digest(*fewer.parse()) == source_digest(*rows.parse()));
  TritonSpec columns;
  columns.json["triton"]["entry"] = "columns";
  CHECK(source_digest(*columns.parse()) != source_digest(*rows.parse()));
}

TEST_CASE("device class and policy and driver branch are in the trial key") {
  Question changed;
  changed.driver_branch = "590";
  CHECK(changed.trial() != Question().trial());
  changed = {};
  changed.policy.warm_l2 = true;
  CHECK(changed.trial() != Question().trial());
  changed = {};
  changed.device_class = Digest::of("another");
  CHECK(changed.trial() != Question().trial());
}

TEST_CASE("the problem is in the trial key also where the launches are the same") {
  Question wide, tall;
  wide.problem = "N=64,D=128,T=f32";
  tall.problem = "N=128,D=64,T=f32";
  CHECK(wide.artifact() == tall.artifact());
  CHECK(wide.trial() != tall.trial());
}

TEST_CASE("lowered names are in no trial key") {
  const Question asked;
  const auto spec = asked.builder.parse();
  const Problem problem = problem_of(*spec);
  PlanTemplate plan = spec->plan_template(problem, asked.configuration);
  plan.launches[0].entry_symbol = "_Z5scale";
  const PlanEvaluator evaluator(plan, problem, asked.configuration, test::h200());
  const TrialContext context{spec.get(), problem, asked.device_class, asked.policy, asked.driver_branch};
  CHECK(trial_key(context, asked.artifact(), *evaluator.evaluate(problem, asked.configuration).plan) ==
        asked.trial());
}

TEST_CASE("each field of a question is in the record key") {
  const RecordQuestion base = Question().record();
  CHECK(from_scratch_key(base) != job_key(base));
  const auto differs = [&](auto edit) {
    RecordQuestion changed = base;
    edit(changed);
    return record_key(changed).digest != record_key(base).digest && job_key(changed) != job_key(base) &&
           from_scratch_key(changed) != from_scratch_key(base);
  };
  CHECK(differs([](RecordQuestion& question) { question.kernel = "other"; }));
  CHECK(differs([](RecordQuestion& question) { question.interface = Digest::of("other"); }));
  CHECK(differs([](RecordQuestion& question) { question.problem.dims[0].value = 101; }));
  CHECK(differs([](RecordQuestion& question) { question.device_class = Digest::of("other"); }));
  CHECK(differs([](RecordQuestion& question) { question.policy.graph_launch = true; }));
  CHECK(differs([](RecordQuestion& question) { question.numerics = {Numerics::Kind::Invariant, "N"}; }));
  CHECK(differs([](RecordQuestion& question) { question.name_space = "team"; }));
}

TEST_CASE("a reference is compiled without the options that change results") {
  SpecBuilder builder;
  builder.json["options"] = {"--use_fast_math", "--std=c++20", "--fmad=false"};
  const auto spec = builder.parse();
  CHECK(nvrtc(artifact_source(*spec, problem_of(*spec), configuration(), "sm_90")).options.size() == 3);
  CHECK(nvrtc(reference_artifact_source(*spec, problem_of(*spec), "sm_90")).options ==
        std::vector<std::string>{"--std=c++20"});
}

TEST_CASE("what a spec says of an output is in the verification digest, and only where it says so") {
  const auto with = [](const char* member, const OrderedJson& value) {
    SpecBuilder builder;
    builder.json["arguments"]["y"][member] = value;
    return verification_digest(*builder.parse());
  };
  const Digest before = verification_digest(*SpecBuilder().parse());
  CHECK(with("constant_output", false) == before);
  CHECK(with("constant_output", true) != before);
  CHECK(with("partial", false) == before);
  CHECK(with("partial", true) != before);
  CHECK(with("partial", "sums") != before);
  CHECK(with("partial", "sums") != with("partial", true));
}

}  // namespace cubind::test
