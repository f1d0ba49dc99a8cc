#include "server/lookup/pins.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/server/rows.hpp"
#include "tests/unit/server/test_database.hpp"

namespace cubind::test {
namespace {

struct PinFixture {
  std::unique_ptr<TestDatabase> database = TestDatabase::make();
  std::unique_ptr<Store> store = database->open();
  Index index;
  std::unique_ptr<Pins> pins = std::make_unique<Pins>(*store, index);

  PinFixture() { measure(4096, 20); }

  void measure(std::int64_t n, double median_us) {
    store->write([&](StoreWriter& writer) {
      writer.put_device_class(h200_class());
      writer.put_record(record_row(n, median_us));
    });
    index.load(*store);
  }
  void restart() { pins = std::make_unique<Pins>(*store, index); }
  std::vector<double> medians(const std::string& job) {
    std::vector<double> medians;
    for (const RecordPtr& record : pins->snapshot(job)->all()) {
      medians.push_back(record->timing.median_us());
    }
    return medians;
  }
};

TEST_CASE("the first question of a job pins the generation that all later ones are answered from") {
  PinFixture f;
  CHECK(f.medians("first") == std::vector{20.0});
  f.measure(4096, 19);
  f.measure(1024, 7);
  CHECK(f.medians("first") == std::vector{20.0});
  CHECK(f.pins->snapshot("first")->generation().number == 1);
  CHECK(f.medians("second") == std::vector{19.0, 7.0});
}

TEST_CASE("each process of a job is counted once") {
  PinFixture f;
  for (const char* process : {"a/1", "a/2", "b/1", "a/1"}) {
    f.pins->snapshot("job", {}, process);
  }
  CHECK(f.pins->processes("job") == 3);
  CHECK(f.pins->processes("other") == 0);
}

TEST_CASE("a pinned generation outlives the daemon") {
  PinFixture f;
  f.pins->snapshot("job");
  f.measure(4096, 19);
  f.restart();
  CHECK(f.medians("job") == std::vector{20.0});
  const Generation pinned = f.pins->snapshot("job")->generation();
  CHECK(pinned.number == 1);
  CHECK(pinned.store_id == f.index.snapshot()->generation().store_id);
}

TEST_CASE("a pin whose snapshot has left the memory is read again from the store") {
  PinFixture f;
  f.pins = std::make_unique<Pins>(*f.store, f.index, 1);
  f.pins->snapshot("first");
  f.measure(4096, 19);
  f.pins->snapshot("second");
  CHECK(f.medians("first") == std::vector{20.0});
  CHECK(f.medians("second") == std::vector{19.0});
}

TEST_CASE("of two pins of one job the first stands") {
  PinFixture f;
  f.measure(8192, 19);
  std::vector<std::uint64_t> generations;
  f.store->write([&](StoreWriter& writer) {
    generations = {writer.pin_generation("job", 1), writer.pin_generation("job", 2)};
  });
  CHECK(generations == std::vector<std::uint64_t>{1, 1});
}

TEST_CASE("a job may pin an earlier generation by name and gets its records") {
  PinFixture f;
  const Generation first = f.index.snapshot()->generation();
  f.measure(4096, 19);
  CHECK(f.pins->snapshot("rollout", first)->all().front()->timing.median_us() == 20.0);
  f.restart();
  CHECK(f.medians("rollout") == std::vector{20.0});
  CHECK(f.pins->snapshot("rollout", first)->generation() == first);
}

TEST_CASE("a generation that the job cannot have is refused with the reason") {
  PinFixture f;
  const Generation now = f.index.snapshot()->generation();
  CHECK_THROWS_WITH(f.pins->snapshot("job", Generation{now.store_id, now.number + 1}),
                    Catch::Contains("generation 2 has not been yet, the newest is 1"));
  CHECK_THROWS_WITH(f.pins->snapshot("job", Generation{"another store's", now.number}),
                    Catch::Contains("is one of another store"));
  f.measure(4096, 19);
  f.pins->snapshot("job");
  CHECK_THROWS_WITH(f.pins->snapshot("job", now), Catch::Contains("has pinned generation 2, not 1"));
  f.restart();
  CHECK_THROWS_WITH(f.pins->snapshot("job", now), Catch::Contains("has pinned generation 2, not 1"));
}

}  // namespace
}  // namespace cubind::test
