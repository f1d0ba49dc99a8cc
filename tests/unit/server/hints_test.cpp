#include "server/lookup/hints.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/server/lookup_fixture.hpp"

namespace cubind::test {
namespace {

std::vector<Configuration> nothing_stored(const RecordRow&) { return {}; }

TEST_CASE("a search begins with the winners of neighbouring problems nearest first and each once") {
  LookupFixture f;
  const Configuration near{{{"THREADS", 512}, {"VECTOR", 4}, {"UNROLL", 1}}};
  const Configuration far{{{"THREADS", 128}, {"VECTOR", 2}, {"UNROLL", 1}}};
  const auto won = [&](std::int64_t n, const Configuration& configuration) {
    return f.record(n, h200_class(), configuration);
  };
  f.add({won(64, near), won(1024, far), won(2048, near), won(4096, far)});
  CHECK(search_hints(f.ask(4096), *f.index.snapshot(), nothing_stored) == std::vector{near, far});
}

TEST_CASE("a search begins with the problem's own winner of a table or of another flush method") {
  const Configuration before{{{"THREADS", 512}, {"VECTOR", 4}, {"UNROLL", 1}}};
  const auto start = [&](const std::function<void(RecordRow&)>& change) {
    LookupFixture f;
    RecordRow row = LookupFixture().record(4096, h200_class(), before);
    change(row);
    f.add({row});
    return search_hints(f.ask(4096), *f.index.snapshot(), nothing_stored);
  };
  CHECK(start([](RecordRow&) {}).empty());
  CHECK(start([](RecordRow& row) { row.evidence = Evidence::Imported; }) == std::vector{before});
  CHECK(start([](RecordRow& row) { row.question.policy.flush_method = kFlushMethod - 1; }) ==
        std::vector{before});
}

TEST_CASE("a search begins with what won on another device class for the problem itself") {
  LookupFixture f;
  const Configuration elsewhere{{{"THREADS", 512}, {"VECTOR", 4}, {"UNROLL", 1}}};
  DeviceFacts a100 = h200();
  a100.set_cc_major(8);
  a100.set_sm_count(108);
  const DeviceClass device = derive_device_class(a100, "facts");
  DeviceFacts recorded = h200();
  recorded.set_replay_table(Digest::of("a table").hex());
  const DeviceClass replay = derive_device_class(recorded, "facts");
  const Configuration played{{{"THREADS", 128}, {"VECTOR", 4}, {"UNROLL", 1}}};
  f.add({f.record(4096, device, elsewhere), f.record(4096, replay, played)}, {device, replay});
  CHECK(search_hints(f.ask(4096), *f.index.snapshot(), nothing_stored) == std::vector{elsewhere});
}

Configuration with_threads(std::int64_t threads) {
  return {{{"THREADS", threads}, {"VECTOR", 4}, {"UNROLL", 1}}};
}

TEST_CASE("a neighbour that was measured by two flush methods counts once and as of today's") {
  LookupFixture f;
  std::vector<RecordRow> rows;
  for (const std::int64_t n : {256, 512, 1024, 2048, 8192}) {
    RecordRow old = f.record(n, h200_class(), with_threads(128));
    old.question.policy.flush_method = kFlushMethod - 1;
    rows.push_back(old);
    rows.push_back(f.record(n, h200_class(), with_threads(256)));
  }
  f.add(rows);
  CHECK(search_hints(f.ask(4096), *f.index.snapshot(), nothing_stored) == std::vector{with_threads(256)});
}

TEST_CASE("a search takes turns among the best that were tried for its neighbours, after their winners") {
  LookupFixture f;
  f.add({f.record(2048, h200_class(), with_threads(128)), f.record(512, h200_class(), with_threads(1024))});
  const auto tried = [](const RecordRow& record) -> std::vector<Configuration> {
    if (record.question.problem == problem_of(512)) {
      return {with_threads(256), with_threads(1024)};
    }
    return {with_threads(512), with_threads(128), with_threads(3)};  // 3 is no value of today's spec
  };
  const auto start = search_hints(f.ask(4096), *f.index.snapshot(), tried);
  CHECK(start == std::vector{with_threads(128), with_threads(1024), with_threads(512), with_threads(256)});
}

TEST_CASE("a search gets what was tried for four neighbours and the winners of further ones") {
  LookupFixture f;
  std::vector<RecordRow> rows;
  for (const std::int64_t n : {64, 256, 512, 1024, 2048}) {
    rows.push_back(f.record(n, h200_class(), with_threads(n == 64 ? 1024 : 128)));
  }
  f.add(rows);
  const auto tried = [](const RecordRow& record) -> std::vector<Configuration> {
    return {with_threads(record.question.problem == problem_of(64) ? 512 : 256)};
  };
  const auto start = search_hints(f.ask(4096), *f.index.snapshot(), tried);
  CHECK(start == std::vector{with_threads(128), with_threads(256), with_threads(1024)});
}

TEST_CASE("a search gets at most so many configurations of its neighbours") {
  LookupFixture f;
  f.add({f.record(2048, h200_class(), with_threads(128))});
  std::vector<Configuration> many;
  for (const std::int64_t threads : {128, 256, 512, 1024}) {
    for (const std::int64_t vector : {1, 2, 4, 8}) {
      for (const std::int64_t unroll : {1, 2, 4}) {
        many.push_back({{{"THREADS", threads}, {"VECTOR", vector}, {"UNROLL", unroll}}});
      }
    }
  }
  const auto start = search_hints(f.ask(4096), *f.index.snapshot(), [&](const RecordRow&) { return many; });
  REQUIRE(start.size() == kMostHints);
  CHECK(start.front() == with_threads(128));
  CHECK(start[1] == many.front());
}

}  // namespace
}  // namespace cubind::test
