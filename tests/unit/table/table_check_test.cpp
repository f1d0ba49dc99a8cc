#include "tuner/table/table_check.hpp"

#include <catch2/catch.hpp>

#include "base/file.hpp"
#include "tests/support/paths.hpp"
#include "tests/unit/spec/spec_builder.hpp"
#include "tests/unit/table/example_table.hpp"
#include "tuner/spec/todays_terms.hpp"

namespace cubind::test {
namespace {

// A kernel and a table that holds for it: one record with its trial.
struct CheckFixture {
  SpecBuilder spec;
  Table table = example_table();
  TableRecord& record = table.records[0];
  TableTrial& trial = table.trials[0];

  CheckFixture() {
    table.trials.erase(table.trials.begin());
    for (TableContext* context : {&record.context, &trial.context}) {
      context->problem.dims = {{"N", 4096}, {"D", 4096}};
      context->configuration.values = {{"THREADS", 128}, {"VECTOR", 4}, {"BLOCKS", 1}};
      context->trial = *trial_key_under(*spec.parse(), context->configuration,
                                        {context->problem, context->device_class, h200(), Policy{},
                                         context->driver, context->architecture, context->toolchain});
    }
    record.interface = interface_digest(*spec.parse());
    record.verification.set_digest(bytes_of(verification_digest(*spec.parse())));
  }

  std::vector<TableFinding> check_text(const std::string& text) const {
    KnownSpecs known;
    known.specs["scale"] = spec.parse();
    known.broken["scales"] = "scales.json /tunables: the key is missing";
    return check_table(text, "t.json", known).findings;
  }
  std::vector<TableFinding> check() const { return check_text(print_table(table)); }
  // The one finding there is.
  std::string finding() const {
    const auto findings = check();
    REQUIRE(findings.size() == 1);
    return (findings[0].outdated ? "outdated: " : "") + findings[0].where + ": " + findings[0].cause;
  }
};

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

TEST_CASE_METHOD(CheckFixture, "a table that holds has no findings") {
  CHECK(check().empty());
  CHECK(check_table(print_table(table), "t.json", {}).records == 1);
}

TEST_CASE_METHOD(CheckFixture,
                 "numerics that are invariant in what is not a dim of the kernel are reported") {
  record.numerics = "invariant:Z";
  record.verification.set_digest(
      bytes_of(verification_digest(*spec.parse(), {Numerics::Kind::Invariant, "Z"})));
  CHECK(finding() ==
        "t.json /records/0/numerics: \"Z\" is not a dim of scale along which an output has rows: no "
        "question finds this record");
  record.numerics = "invariant:N";
  record.verification.set_digest(
      bytes_of(verification_digest(*spec.parse(), {Numerics::Kind::Invariant, "N"})));
  CHECK(check().empty());
}

TEST_CASE_METHOD(CheckFixture, "a value that the spec does not list is reported at its tunable") {
  record.context.configuration.values[1].value = 3;
  CHECK(
      finding() ==
      "t.json /records/0/configuration/VECTOR: 3 is not listed by scale.json /tunables/VECTOR (1, 2, 4, 8)");
}

TEST_CASE_METHOD(CheckFixture,
                 "a configuration that breaks a constraint is reported with the constraint's values") {
  record.context.problem.dims[1].value = 4098;
  CHECK_THAT(finding(), StartsWith("t.json /records/0/configuration: ") && Contains("D % VECTOR == 0"));
}

TEST_CASE_METHOD(CheckFixture, "a configuration that does not launch on the measured device is reported") {
  spec.json["launches"][0]["shared_bytes"] = "VECTOR * 100000";
  CHECK_THAT(check().at(0).where, Contains("/records/0/configuration"));
  CHECK_THAT(check().at(0).cause, Contains("shared"));
}

TEST_CASE_METHOD(CheckFixture, "a trial that a constraint excluded may break it") {
  trial.context.configuration.values[1].value = 8;
  trial.context.problem.dims[1].value = 4;
  trial.context.trial = Digest::of("of no use");
  CHECK_THAT(finding(), StartsWith("t.json /trials/0/configuration: "));
  trial.outcome = Outcome::Constraint;
  CHECK(check().empty());
}

TEST_CASE_METHOD(CheckFixture, "a changed source makes records and trials other revisions") {
  spec.file("helper.cuh").content += "// changed\n";
  const auto findings = check();
  REQUIRE(findings.size() == 2);
  CHECK(findings[0].where == "t.json /records/0/trial");
  CHECK(findings[1].where == "t.json /trials/0/trial");
  CHECK_THAT(findings[0].cause, StartsWith("other_revision: not the key that scale.json gives"));
  CHECK((findings[0].outdated && findings[1].outdated));
}

TEST_CASE_METHOD(CheckFixture, "a tunable that is newer than the record makes it another revision") {
  record.context.configuration.values.pop_back();
  CHECK_THAT(finding(),
             StartsWith("outdated: t.json /records/0/configuration: other_revision: the tunable \"BLOCKS\""));
}

TEST_CASE_METHOD(CheckFixture, "a tunable that the spec does not have is reported with the nearest one") {
  record.context.configuration.values[0].name = "THREAD";
  const auto findings = check();
  REQUIRE(findings.size() == 2);
  CHECK_THAT(findings[1].where, Contains("/records/0/configuration/THREAD"));
  CHECK_THAT(findings[1].cause, Contains("did you mean \"THREADS\"?"));
}

TEST_CASE_METHOD(CheckFixture, "a changed tolerance is outdated at the verification's digest") {
  spec.json["tolerance"]["f32"]["rtol"] = 1e-7;
  CHECK_THAT(finding(),
             StartsWith("outdated: t.json /records/0/verification/digest: the reference or the tolerance"));
}

TEST_CASE_METHOD(CheckFixture, "another interface is reported since no question finds the record") {
  table.trials.clear();
  spec.json["arguments"]["x"]["align"] = 32;
  TableRecord second = record;
  second.name_space = "another";
  table.records.push_back(second);
  CHECK_THAT(finding(), StartsWith("t.json /records/0/interface: 2 records of scale ") &&
                            Contains("than scale.json declares: no question finds them"));
}

TEST_CASE_METHOD(CheckFixture,
                 "an unknown kernel is reported with the nearest name and a broken one with its error") {
  table.trials.clear();
  record.context.kernel = "scal";
  CHECK_THAT(finding(),
             StartsWith("t.json /records/0/kernel: no spec has the name \"scal\", did you mean \"scale\"?"));
  record.context.kernel = "scales";
  CHECK_THAT(finding(), Contains("does not parse: scales.json /tunables"));
}

TEST_CASE_METHOD(CheckFixture, "a problem that is not the kernel's is reported") {
  table.trials.clear();
  record.context.problem.types[0].type = DType::F64;
  CHECK_THAT(finding(), StartsWith("t.json /records/0/problem: T = f64 is not listed by scale"));
  record.context.problem.types[0].type = DType::F32;
  std::swap(record.context.problem.dims[0], record.context.problem.dims[1]);
  CHECK_THAT(finding(), Contains("N=4096,D=4096,T=f32 is right"));
}

TEST_CASE_METHOD(CheckFixture, "a cubin that does not run on its device is reported") {
  record.context.architecture = "sm_100";
  CHECK_THAT(check().at(0).where, Contains("/records/0/architecture"));
}

TEST_CASE_METHOD(CheckFixture, "a record whose trial was wrong is no winner") {
  trial.outcome = Outcome::WrongResult;
  CHECK_THAT(finding(), StartsWith("t.json /records/0/trial: /trials/0 ended as wrong_result"));
}

TEST_CASE_METHOD(CheckFixture,
                 "each element that cannot be read is reported, once, and the rest is checked too") {
  table.records.push_back(record);
  table.records[1].context.driver = "590.10";
  table.records[1].context.configuration.values[1].value = 3;
  OrderedJson document = parse_json_strict(print_table(table), "t.json");
  document["records"][0]["samples"] = 0;
  document["trials"][0]["outcome"] = "fine";
  document["trials"][0].erase("policy");
  const auto findings = check_text(document.dump());
  REQUIRE(findings.size() == 3);
  CHECK(findings[0].where == "t.json /records/0/samples");
  CHECK(findings[1].where == "t.json /trials/0");
  CHECK(findings[2].where == "t.json /records/1/configuration/VECTOR");
}

TEST_CASE_METHOD(CheckFixture, "all that the reader refuses is reported and the rest is checked too") {
  table.trials.clear();
  table.records.push_back(record);
  table.records[0].context.driver = "590.10";
  table.records[0].timing.set_low_us(2.75);
  table.records[1].context.configuration.values[1].value = 3;
  const auto findings = check();
  REQUIRE(findings.size() == 2);
  CHECK_THAT(findings[0].cause, Contains("not between time_low_us and time_high_us"));
  CHECK_THAT(findings[1].where, Contains("/configuration/VECTOR"));
  CHECK(findings[0].where.substr(0, 17) != findings[1].where.substr(0, 17));
}

TEST_CASE_METHOD(CheckFixture, "a device that contradicts itself does not spoil the check of its records") {
  std::string text = print_table(table);
  const std::string from = "\"sm_count\":132";
  text.replace(text.find(from), from.size(), "\"sm_count\":114");
  const auto findings = check_text(text);
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].where == "t.json /devices/0/class");
}

TEST_CASE_METHOD(CheckFixture, "text that is no JSON is reported with line and column") {
  const auto findings = check_text("{\n  \"format\": }");
  REQUIRE(findings.size() == 1);
  CHECK(findings[0].where == "t.json line 2, column 13");
}

TEST_CASE("the shipped tables hold for the shipped kernels") {
  const auto folder = source_dir() / "variants";
  const KnownSpecs known = load_specs({folder});
  std::size_t records = 0;
  for (const auto& item : std::filesystem::directory_iterator(folder / "tables")) {
    const TableCheck check = check_table(read_file(item.path()), item.path().filename(), known);
    for (const TableFinding& finding : check.findings) {
      FAIL_CHECK(finding.where << ": " << finding.cause);
    }
    records += check.records;
  }
  CHECK(records > 0);
}

}  // namespace
}  // namespace cubind::test
