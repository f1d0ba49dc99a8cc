// What the store keeps of records, wants and the queue.
#include <catch2/catch.hpp>

#include "tests/support/facts.hpp"
#include "tests/unit/server/store_fixture.hpp"

namespace cubind::test {
namespace {

TEST_CASE("records are append-only and a replaced one keeps the generations from and to which it held") {
  RecordStore f;
  f.put(record_row(4096, 20));
  f.put(record_row(4096, 19));
  RecordFilter all;
  all.current_only = false;
  const auto rows = f.read([&](StoreReader& reader) { return reader.records(all); });
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].from_generation == 1);
  CHECK(rows[0].to_generation == 2);
  CHECK(rows[1].from_generation == 2);
  CHECK_FALSE(rows[1].to_generation);
  CHECK(f.generation().number == 2);
}

TEST_CASE("replaced records are read in the order in which they were stored, so many at a time") {
  RecordStore f;
  for (const double median_us : {20.0, 19.0, 18.0}) {
    f.put(record_row(4096, median_us));
  }
  f.put(record_row(1024, 7));
  const auto replaced = [&](std::int64_t id, const std::string& kernel) {
    const auto rows = f.read([&](StoreReader& reader) { return reader.replaced_after(id, kernel, 1); });
    return rows.empty() ? RecordRow() : rows.front();
  };
  const RecordRow first = replaced(0, ""), second = replaced(first.id, first.question.kernel);
  CHECK(first.timing.median_us() == 20);
  CHECK(second.timing.median_us() == 19);
  CHECK(replaced(second.id, "").id == 0);
  CHECK(replaced(0, "other").id == 0);
}

TEST_CASE("one row per driver branch and toolchain major and none overwrites another") {
  RecordStore f;
  RecordRow other_driver = record_row(4096);
  other_driver.driver.version = "590.11.01";
  RecordRow other_toolchain = record_row(4096);
  other_toolchain.toolchain = toolchain("nvrtc 12.8");
  for (const RecordRow& row : {record_row(4096), other_driver, other_toolchain}) {
    CHECK(f.put(row));
  }
  CHECK(f.records().size() == 3);
}

TEST_CASE("an import never replaces a measurement and the same import is known") {
  RecordStore f;
  f.put(record_row(4096));
  RecordRow imported = record_row(4096, 15);
  imported.evidence = Evidence::Imported;
  CHECK(f.put(imported));
  CHECK(f.records().size() == 2);
  CHECK_FALSE(f.put(imported));
}

TEST_CASE("a new record is stored unless its question has one of whatever driver and evidence") {
  RecordStore fixture;
  const auto put_new = [&](const RecordRow& row) {
    bool stored = false;
    fixture.write([&](StoreWriter& writer) { stored = writer.put_new_record(row); });
    return stored;
  };
  const RecordRow first = record_row(4096, 20);
  RecordRow other = record_row(4096, 10);
  other.driver.version = "999.1";
  other.evidence = Evidence::Imported;
  CHECK(put_new(first));
  CHECK_FALSE(put_new(first));
  CHECK_FALSE(put_new(other));
  CHECK(put_new(record_row(8192)));
  CHECK(fixture.records().size() == 2);
  const auto kept = fixture.read([&](StoreReader& reader) { return reader.records_of(first.question); });
  REQUIRE(kept.size() == 1);
  CHECK(kept[0].timing.median_us() == 20);
}

TEST_CASE("a replayed record that comes back in a table is known and one of a new job is not") {
  RecordStore f;
  RecordRow replayed = record_row(4096);
  replayed.evidence = Evidence::Replayed;
  CHECK(f.put(replayed));
  CHECK_FALSE(f.put(replayed));
  replayed.timing.set_measured_at("2026-11-29T04:11:34.227Z");
  CHECK(f.put(replayed));
}

TEST_CASE("a provisional record never replaces an uncontended one which ends a provisional one") {
  RecordStore f;
  RecordRow provisional = record_row(4096);
  provisional.provisional = true;
  CHECK(f.put(provisional));
  CHECK(f.put(record_row(4096)));
  CHECK(f.records().size() == 1);
  CHECK_FALSE(f.put(provisional));
}

TEST_CASE("every field of a record survives the store") {
  RecordStore f;
  RecordRow row = record_row(4096);
  row.question.policy = {true, 1, true};
  row.question.numerics = {Numerics::Kind::Invariant, "N"};
  row.question.name_space = "team";
  row.timing.set_contended(true);
  row.timing.set_throttled(true);
  row.provisional = true;
  row.verification.set_digest(bytes_of(Digest::of("reference")));
  f.put(row);
  const RecordRow read = f.records().at(0);
  CHECK(record_key(read.question) == record_key(row.question));
  CHECK(read.verification == row.verification);
  CHECK(read.configuration == row.configuration);
  CHECK(read.finalists == row.finalists);
  CHECK(read.timing == row.timing);
}

LibraryComparison torch_comparison(double gain = 1.25) {
  return gain_over("torch 2.13.0", gain, gain, gain, 40);
}

TEST_CASE("a comparison is kept with its record and begins no generation") {
  RecordStore f;
  f.put(record_row(4096));
  const std::int64_t id = f.records().at(0).id;
  const Generation before = f.generation();
  f.write([&](StoreWriter& writer) { CHECK(writer.put_comparison(id, torch_comparison())); });
  f.reopen();
  CHECK(f.records().at(0).over_library == std::vector{torch_comparison()});
  CHECK(f.generation() == before);
}

TEST_CASE("a change of a record or a job keeps the fields that a later version has added") {
  RecordStore f;
  RecordRow record = record_row(4096);
  record.unknown_fields = "\x98\x06\x07";  // number 99
  f.put(record);
  JobRow job;
  job.id = "a";
  job.question = question_of(1);
  job.fact.GetReflection()->MutableUnknownFields(&job.fact)->ParseFromString(record.unknown_fields);
  f.write([&](StoreWriter& writer) {
    writer.put_comparison(f.records().at(0).id, torch_comparison());
    writer.put_job(job);
    JobRow known = *writer.job("a");
    known.shown().set_error("changed");
    writer.put_job(known);
  });
  CHECK(f.records().at(0).over_library.size() == 1);
  CHECK(f.records().at(0).unknown_fields == record.unknown_fields);
  const v1::StoredJob kept = f.read([](StoreReader& reader) { return reader.job("a"); }).value().fact;
  CHECK(kept.GetReflection()->GetUnknownFields(kept).field(0).number() == 99);
}

TEST_CASE("a winner with another cubin has no comparison and one with the same cubin keeps it") {
  RecordStore f;
  f.put(record_row(4096));
  f.write([&](StoreWriter& writer) { writer.put_comparison(f.records().at(0).id, torch_comparison()); });
  f.put(record_row(4096, 19));
  CHECK(f.records().at(0).over_library == std::vector{torch_comparison()});
  RecordRow other = record_row(4096, 18);
  other.cubin = Digest::of("another cubin");
  f.put(other);
  CHECK(f.records().at(0).over_library.empty());
}

TEST_CASE("a record that is replaced takes no comparison") {
  RecordStore f;
  f.put(record_row(4096));
  const std::int64_t id = f.records().at(0).id;
  f.put(record_row(4096, 19));
  f.write([&](StoreWriter& writer) { CHECK_FALSE(writer.put_comparison(id, torch_comparison())); });
}

TEST_CASE("a row of a table that is known brings its comparisons") {
  RecordStore f;
  RecordRow imported = record_row(4096);
  imported.evidence = GENERATE(Evidence::Imported, Evidence::Shipped);
  f.put(imported);
  imported.over_library = {torch_comparison()};
  CHECK_FALSE(f.put(imported));
  CHECK(f.records().at(0).over_library == imported.over_library);
}

TEST_CASE("wants are counted by question most asked first") {
  StoreFixture f;
  f.write([](StoreWriter& writer) {
    writer.count_want(question_of(1), "t1");
    writer.count_want(question_of(2), "t1");
    writer.count_want(question_of(2), "t2");
  });
  const auto wants = f.read([](StoreReader& reader) { return reader.wants(); });
  REQUIRE(wants.size() == 2);
  CHECK(wants[0].question.problem == problem_of(2));
  CHECK(wants[0].count == 2);
  CHECK(wants[0].last_at == "t2");
}

TEST_CASE("a want leaves the list when a record for it is stored") {
  StoreFixture f;
  f.write([](StoreWriter& writer) {
    writer.put_device_class(h200_class());
    writer.count_want(question_of(1), "t1");
    writer.count_want(question_of(2), "t1");
    writer.put_record(record_row(1));
  });
  const auto wants = f.read([](StoreReader& reader) { return reader.wants(); });
  REQUIRE(wants.size() == 1);
  CHECK(wants[0].question.problem == problem_of(2));
}

TEST_CASE("a full want list drops what was asked least and longest ago") {
  StoreFixture f;
  f.write([](StoreWriter& writer) { writer.count_want(question_of(1), "t2"); });
  f.copy_rows("wants", kMaxWants - 3,
              {"key = randomblob(32)", "key = sha256(convert_to(number::text, 'UTF8'))"});
  f.write([](StoreWriter& writer) {
    writer.count_want(question_of(2), "t1");
    writer.count_want(question_of(2), "t1");
    writer.count_want(question_of(7), "t0");
  });
  CHECK(f.count_rows("wants") == kMaxWants);
  f.write([](StoreWriter& writer) { writer.count_want(question_of(3), "t2"); });
  CHECK(f.count_rows("wants") == kMaxWants);
  CHECK(f.count_rows("wants WHERE last_at = 't0'") == 0);
  CHECK(f.count_rows("wants WHERE count = 2") == 1);
}

TEST_CASE("of two open jobs with the same key the second is refused") {
  StoreFixture f;
  JobRow job;
  job.id = "a";
  job.question = question_of(1);
  job.key = job_key(job.question);
  f.write([&](StoreWriter& writer) { writer.put_job(job); });
  job.id = "b";
  CHECK_THROWS_AS(f.write([&](StoreWriter& writer) { writer.put_job(job); }), Error);
  CHECK(f.read([](StoreReader& reader) { return reader.open_jobs(); }).size() == 1);
}

}  // namespace
}  // namespace cubind::test
