#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "tests/unit/server/lookup_fixture.hpp"
#include "tuner/spec/space.hpp"

namespace cubind::test {
namespace {

std::int64_t measured(const AnswerCandidate& candidate) {
  return candidate.record ? *candidate.record->question.problem.dim("N") : 0;
}

TEST_CASE("a record of the problem itself is exact") {
  LookupFixture f;
  f.add({f.record(4096)});
  CHECK(f.best(f.ask(4096)).match.exact());
}

TEST_CASE("a bucket answers with the record of its largest measured problem") {
  LookupFixture f;
  f.add({f.record(2100), f.record(4000), f.record(3000)});
  const auto best = f.best(f.ask(2500));
  CHECK(best.match == Match{Departure::Bucket});
  CHECK(measured(best) == 4000);
}

TEST_CASE("the record that leads a bucket is the one that its other problems are answered with") {
  LookupFixture f;
  RecordRow imported = f.record(4096);
  imported.evidence = Evidence::Imported;
  f.add({imported, f.record(3000)});
  const Question asked = f.ask(4096);
  const CarryOver carry = [&](const RecordRow& row, const DeviceFacts& facts) {
    return carry_over(*asked.spec, row, facts);
  };
  const auto conditions = [&](const RecordPtr& record) {
    return bucket_conditions(asked, *f.index.snapshot(), carry, *record);
  };
  CHECK(measured(f.best(asked)) == 4096);
  CHECK_FALSE(conditions(f.best(asked).record));
  CHECK(measured(f.best(f.ask(2500))) == 3000);
  CHECK(conditions(f.best(f.ask(2500)).record) == std::vector<std::string>{});
}

TEST_CASE("a record also leads where the configurations before it are not valid, whichever problem asks") {
  LookupFixture f;
  auto spec = std::make_shared<KernelSpec>(*f.spec);
  spec->constraints.insert(spec->constraints.end(), {"UNROLL < 4 || N > 3600", "UNROLL == 1 || N % 2 == 0",
                                                     "THREADS < 1024 || N == 0"});
  f.spec = spec;
  const auto with = [](std::int64_t threads, std::int64_t unroll) {
    return Configuration{{{"THREADS", threads}, {"VECTOR", 4}, {"UNROLL", unroll}}};
  };
  f.add({f.record(4090, h200_class(), with(256, 4)), f.record(4080, h200_class(), with(512, 4)),
         f.record(3998, h200_class(), with(256, 2)), f.record(3997, h200_class(), with(256, 1))});
  const std::vector<std::int64_t> measured_problems{4090, 4080, 3998, 3997};
  const auto of_rule = [&](std::int64_t asked_n, std::int64_t n) {
    const Question asked = f.ask(asked_n);
    const RecordPtr record = f.best(asked).record;
    const auto conditions = bucket_conditions(
        asked, *f.index.snapshot(),
        [&](const RecordRow& row, const DeviceFacts& facts) { return carry_over(*asked.spec, row, facts); },
        *record);
    REQUIRE(conditions);
    PlanTemplate plan = spec->plan_template(asked.key.problem, record->configuration);
    plan.constraints.insert(plan.constraints.end(), conditions->begin(), conditions->end());
    const PlanEvaluator evaluator(plan, asked.key.problem, record->configuration, device_constants(h200()));
    return evaluator.evaluate(f.ask(n).key.problem, record->configuration).plan ? record : nullptr;
  };
  const auto is_measured = [&](std::int64_t n) { return std::ranges::count(measured_problems, n) != 0; };
  std::set<std::int64_t> answered_by;
  for (std::int64_t n = 2049; n <= 4096; n += 73) {
    const RecordPtr best = f.best(f.ask(n)).record;
    answered_by.insert(measured(f.best(f.ask(n))));
    for (const std::int64_t asked : {2049, 2500, 3601, 3602}) {
      INFO(n << " by the rule that " << asked << " got");
      const bool is_covered = of_rule(asked, n) != nullptr;
      CHECK((is_measured(n) || is_covered == (f.best(f.ask(asked)).record == best)));
    }
  }
  CHECK(answered_by == std::set<std::int64_t>{4090, 3998, 3997});
}

TEST_CASE("where a launch limit refuses the configuration before a record, it answers its problem alone") {
  LookupFixture f;
  auto spec = std::make_shared<KernelSpec>(*f.spec);
  spec->launches[0].shared_bytes = "UNROLL == 4 ? 1000 * (4096 - N) : 0";
  f.spec = spec;
  f.add({f.record(4096, h200_class(), {{{"THREADS", 256}, {"VECTOR", 4}, {"UNROLL", 4}}}),
         f.record(4000, h200_class(), {{{"THREADS", 256}, {"VECTOR", 4}, {"UNROLL", 1}}})});
  const Question asked = f.ask(2500);
  const AnswerCandidate best = f.best(asked);
  REQUIRE(measured(best) == 4000);
  const CarryOver carry = [&](const RecordRow& row, const DeviceFacts& facts) {
    return carry_over(*asked.spec, row, facts);
  };
  CHECK_FALSE(bucket_conditions(asked, *f.index.snapshot(), carry, *best.record));
}

TEST_CASE("beyond the bucket the nearest problem within distance 2 answers and beyond that the default") {
  LookupFixture f;
  f.add({f.record(4096), f.record(1024)});
  CHECK(measured(f.best(f.ask(8192))) == 4096);
  CHECK(f.best(f.ask(8192)).match == Match{Departure::NearestProblem});
  CHECK(f.best(f.ask(4096 * 4)).match == Match{Departure::NearestProblem});
  CHECK(f.best(f.ask(4096 * 4 + 1)).match == Match{Departure::Default});
}

TEST_CASE("the problem itself goes before its bucket and the bucket before the nearest problem") {
  LookupFixture f;
  f.add({f.record(2500), f.record(4096), f.record(2048)});
  const auto ranked = f.rank(f.ask(2500));
  REQUIRE(ranked.size() == 4);
  CHECK(measured(ranked[0]) == 2500);
  CHECK(measured(ranked[1]) == 4096);
  CHECK(measured(ranked[2]) == 2048);
  CHECK(ranked[3].match == Match{Departure::Default});
}

TEST_CASE("the nearest problem has the same types and flags") {
  LookupFixture f;
  RecordRow half = f.record(4096);
  half.question.problem.types[0].type = DType::F16;
  RecordRow causal = f.record(4096);
  causal.question.problem.flags = {{"CAUSAL", 1}};
  f.add({half, causal});
  CHECK(f.best(f.ask(4096)).match == Match{Departure::Default});
  CHECK(f.best(f.ask(8192)).match == Match{Departure::Default});
}

TEST_CASE("a record answers only for its own policy and numerics and namespace") {
  LookupFixture f;
  f.add({f.record(4096)});
  const auto other = [&](const std::function<void(RecordQuestion&)>& change) {
    Question question = f.ask(4096);
    change(question.key);
    return f.best(question).match;
  };
  CHECK(other([](RecordQuestion&) {}).exact());
  const Match none{Departure::Default};
  CHECK(other([](RecordQuestion& key) { key.policy.warm_l2 = true; }) == none);
  CHECK(other([](RecordQuestion& key) { key.policy.graph_launch = true; }) == none);
  CHECK(other([](RecordQuestion& key) { key.numerics.kind = Numerics::Kind::Reproducible; }) == none);
  CHECK(other([](RecordQuestion& key) { key.name_space = "team"; }) == none);
}

TEST_CASE("another device class answers last before the default") {
  LookupFixture f;
  DeviceFacts a100 = h200();
  a100.set_cc_major(8);
  a100.set_sm_count(108);
  const DeviceClass device = derive_device_class(a100, "facts");
  f.add({f.record(4096, device)}, {device});
  CHECK(f.best(f.ask(4096)).match == Match{Departure::OtherDevice});
}

TEST_CASE("candidates rank by their worst departure then by count") {
  LookupFixture f;
  RecordRow stale = f.record(4096);
  stale.driver.version = "570.1";
  f.add({stale, f.record(3000)});
  Question question = f.ask(4096);
  question.driver = DriverVersion{13000, "580.159.04"};
  const auto ranked = f.rank(question);
  CHECK(ranked[0].match == Match{Departure::Bucket});
  CHECK(ranked[1].match.has(Departure::Stale));
}

TEST_CASE("at equal match evidence decides measured then provisional then imported then shipped") {
  LookupFixture f;
  // Of another toolchain: with a measurement of its own the store keeps no provisional one.
  RecordRow provisional = f.record(4096, h200_class(), {}, "nvrtc 12.8");
  provisional.provisional = true;
  RecordRow imported = f.record(4096);
  imported.evidence = Evidence::Imported;
  RecordRow shipped = f.record(4096);
  shipped.evidence = Evidence::Shipped;
  f.add({shipped, imported, provisional, f.record(4096)});
  const auto ranked = f.rank(f.ask(4096));
  REQUIRE(ranked.size() == 5);
  for (int i = 0; i < 4; ++i) {
    CHECK(ranked[i].match.exact());
  }
  CHECK((ranked[0].evidence == Evidence::Measured && !ranked[0].record->provisional));
  CHECK((ranked[1].evidence == Evidence::Measured && ranked[1].record->provisional));
  CHECK(ranked[2].evidence == Evidence::Imported);
  CHECK(ranked[3].evidence == Evidence::Shipped);
  CHECK(ranked[4].match == Match{Departure::Default});
}

TEST_CASE("a milder match goes before better evidence") {
  LookupFixture f;
  RecordRow imported = f.record(4096);
  imported.evidence = Evidence::Imported;
  f.add({imported, f.record(3000)});
  CHECK(f.best(f.ask(4096)).evidence == Evidence::Imported);
}

TEST_CASE("a replayed class never answers for a real one nor the other way round") {
  LookupFixture f;
  DeviceFacts facts = h200();
  facts.set_replay_table(Digest::of("table").hex());
  const DeviceClass replay = derive_device_class(facts, "facts");
  RecordRow replayed = f.record(4096, replay);
  replayed.evidence = Evidence::Replayed;
  f.add({replayed}, {replay});
  CHECK(f.best(f.ask(4096)).match == Match{Departure::Default});
  CHECK(f.best(f.ask(4096, replay)).match.exact());
}

TEST_CASE("a candidate that violates the asked problem's constraints is passed over") {
  LookupFixture f;
  f.spec = spec_with("rmsnorm/rmsnorm_forward.json");
  const auto ask = [&](std::int64_t n, std::int64_t d) {
    Question question = f.ask(1);
    question.key.kernel = f.spec->name;
    question.key.problem = {{{"N", n}, {"D", d}}, {{"T", DType::Bf16}}, {}, ""};
    return question;
  };
  RecordRow row = record_row(1);
  row.question = ask(64, 4096).key;
  row.configuration = *default_configuration(*f.spec, row.question.problem, device_constants(h200()));
  f.add({row});
  REQUIRE(f.best(ask(64, 4096)).record);
  CHECK(f.best(ask(64, 5000)).record);
  // 4095 is not divisible by the winner's vector width.
  CHECK_FALSE(f.best(ask(64, 4095)).record);
}

TEST_CASE("a candidate that exceeds the launch limits for the asked problem is passed over") {
  LookupFixture f;
  constexpr std::int64_t kTooMany = std::int64_t{1}
                                    << 40;  // 2^31 blocks of 512 elements, a grid has 2^31 - 1
  const auto recorded = [&](std::int64_t vector) {
    return f.record(kTooMany - 512, h200_class(), {{{"THREADS", 128}, {"VECTOR", vector}, {"UNROLL", 4}}});
  };
  f.add({recorded(1)});
  REQUIRE(f.best(f.ask(kTooMany - 512)).record);
  CHECK_FALSE(f.best(f.ask(kTooMany)).record);
  f.add({recorded(4)});
  CHECK(f.best(f.ask(kTooMany)).record);
}

TEST_CASE("the default is a list tried in order and then the first valid configuration") {
  LookupFixture f;
  f.spec = spec_with("rmsnorm/rmsnorm_forward.json");
  Question question = f.ask(1);
  question.key.kernel = f.spec->name;
  question.key.problem = {{{"N", 64}, {"D", 4095}}, {{"T", DType::Bf16}}, {}, ""};
  const auto best = f.best(question);
  CHECK(best.match == Match{Departure::Default});
  CHECK(best.configuration != f.spec->defaults.front());
  CHECK_FALSE(violation(*f.spec, question.key.problem, best.configuration, device_constants(h200())));
}

TEST_CASE("a winner whose trial key differs from today's is another revision") {
  LookupFixture f;
  RecordRow row = f.record(4096);
  row.trial = Digest::of("of an older source");
  f.add({row});
  CHECK(f.best(f.ask(4096)).match == Match{Departure::OtherRevision});
}

TEST_CASE("a new tunable orphans no record which takes its default") {
  LookupFixture f;
  RecordRow row = f.record(4096);
  row.configuration.values.pop_back();
  f.add({row});
  const auto best = f.best(f.ask(4096));
  REQUIRE(best.record);
  CHECK(best.configuration.values.size() == f.spec->tunables.size());
}

TEST_CASE("a value that the spec no longer lists is not carried over") {
  LookupFixture f;
  RecordRow row = f.record(4096);
  row.configuration.values[0].value = 3;
  f.add({row});
  CHECK_FALSE(f.best(f.ask(4096)).record);
}

TEST_CASE("imported provisional stale and unverified records are not fresh") {
  LookupFixture f;
  f.add({f.record(4096)});
  const Question question = f.ask(4096);
  const AnswerCandidate fresh = f.best(question);
  CHECK(is_fresh(question, fresh));
  const auto with = [&](const std::function<void(RecordRow&)>& change) {
    RecordRow row = *fresh.record;
    change(row);
    AnswerCandidate candidate = fresh;
    candidate.record = std::make_shared<const RecordRow>(row);
    return is_fresh(question, candidate);
  };
  CHECK_FALSE(with([](RecordRow& row) { row.evidence = Evidence::Imported; }));
  CHECK_FALSE(with([](RecordRow& row) { row.provisional = true; }));
  CHECK_FALSE(with([](RecordRow& row) { row.verification.set_verified(false); }));
  CHECK_FALSE(
      with([](RecordRow& row) { row.verification.set_digest(bytes_of(Digest::of("another reference"))); }));
}

TEST_CASE("a snapshot stays as it is while the index goes on") {
  LookupFixture f;
  f.add({f.record(4096)});
  const auto before = f.index.snapshot();
  f.store->write([&](StoreWriter& writer) { writer.put_record(f.record(3000)); });
  f.index.refresh(*f.store, f.record(3000).question);
  CHECK(before->record_count().all == 1);
  CHECK(f.index.snapshot()->record_count().all == 2);
  CHECK(f.index.snapshot()->generation().number == before->generation().number + 1);
}

TEST_CASE("what answers a locked question depends neither on the driver nor on the toolchain") {
  LookupFixture f;
  f.add({f.record(2500), f.record(4096)});
  Question asked = f.ask(2500);
  asked.driver = DriverVersion{13010, "590.10"};
  asked.toolchain = CurrentToolchain{"nvrtc 13.1", {}};
  CHECK(f.best(asked).match.has(Departure::Stale));
  asked.is_locked = true;
  CHECK(f.best(asked).match.exact());
  CHECK(measured(f.best(asked)) == 2500);
}

TEST_CASE("neither a default nor another revision answers a locked question") {
  LookupFixture f;
  RecordRow edited = f.record(4096);
  edited.trial = Digest::of("of an earlier source");
  f.add({edited});
  Question asked = f.ask(4096);
  CHECK(f.best(asked).match == Match{Departure::OtherRevision});
  asked.is_locked = true;
  CHECK(f.rank(asked).empty());
}

}  // namespace
}  // namespace cubind::test
