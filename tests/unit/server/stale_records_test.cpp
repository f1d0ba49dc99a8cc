// Which records are stale for a question, and what a validator says.
#include <catch2/catch.hpp>

#include <functional>

#include "tests/unit/server/lookup_fixture.hpp"

namespace cubind::test {
namespace {

TEST_CASE("an absent driver makes nothing stale and another branch does") {
  LookupFixture f;
  f.add({f.record(4096)});
  Question question = f.ask(4096);
  CHECK(f.best(question).match.exact());
  question.driver = DriverVersion{13000, "580.65.06"};
  CHECK(f.best(question).match.exact());
  question.driver = DriverVersion{13000, "590.11.01"};
  CHECK(f.best(question).match == Match{Departure::Stale});
}

TEST_CASE("another toolchain or power limit makes a record stale") {
  LookupFixture f;
  RecordRow row = f.record(4096);
  row.timing.set_power_limit_mw(700000);
  f.add({row});
  Question question = f.ask(4096);
  question.toolchain = CurrentToolchain{"nvrtc 13.1", {}};
  CHECK(f.best(question).match == Match{Departure::Stale});
  question.toolchain = CurrentToolchain{"nvrtc 13.0", {}};
  question.gpu.set_power_limit_mw(600000);
  CHECK(f.best(question).match == Match{Departure::Stale});
  question.gpu.set_power_limit_mw(700000);
  CHECK(f.best(question).match.exact());
}

TEST_CASE("a stale record tells the validator that has changed") {
  LookupFixture f;
  RecordRow row = f.record(4096);
  row.timing.set_power_limit_mw(700000);
  const auto because = [&](const std::function<void(Question&)>& change) {
    Question question = f.ask(4096);
    change(question);
    return stale_because(question, row, true);
  };
  CHECK(because([](Question&) {}).empty());
  CHECK(because([](Question& one) {
          one.driver = DriverVersion{13000, "590.11.01"};
        }) == "driver " + row.driver.version + ", now 590.11.01");
  CHECK(because([](Question& one) {
          one.toolchain = CurrentToolchain{"nvrtc 13.1", {}};
        }) == "nvrtc 13.0, now nvrtc 13.1");
  CHECK(because([](Question& one) {
          one.toolchain = CurrentToolchain{"nvrtc 13.0", {{Digest::of("a"), Digest::of("b")}}};
        }) == "another build of nvrtc 13.0");
  CHECK(because([](Question& one) { one.gpu.set_power_limit_mw(600000); }) == "power limit 700 W, now 600 W");
}

TEST_CASE("a toolchain upgraded in place makes stale what was measured here and not what a table brought") {
  LookupFixture f;
  RecordRow imported = f.record(8192);
  imported.evidence = Evidence::Imported;
  f.add({f.record(4096), imported});
  const auto ask = [&](std::int64_t n, const ToolchainIdentity& today) {
    Question question = f.ask(n);
    question.toolchain = CurrentToolchain{"nvrtc 13.0", {{today.nvrtc, today.builtins}}};
    return f.best(question).match;
  };
  ToolchainIdentity upgraded = toolchain("nvrtc 13.0");
  CHECK(ask(4096, upgraded).exact());
  upgraded.builtins = Digest::of("of a later build");
  CHECK(ask(4096, upgraded) == Match{Departure::Stale});
  CHECK(ask(8192, upgraded).exact());
}

TEST_CASE("a record that was measured by another flush method is stale and yields to one of today's") {
  LookupFixture f;
  RecordRow old = f.record(4096);
  old.question.policy.flush_method = kFlushMethod - 1;
  f.add({old});
  CHECK(f.best(f.ask(4096)).match.has(Departure::Stale));
  f.add({f.record(4096), old});
  CHECK(f.best(f.ask(4096)).match.exact());
}

TEST_CASE("what is known of one flush method stays when a record of another is read again") {
  LookupFixture f;
  RecordRow old = f.record(4096);
  old.question.policy.flush_method = kFlushMethod - 1;
  f.add({f.record(4096), old});
  f.index.refresh(*f.store, old.question);
  CHECK(f.best(f.ask(4096)).match.exact());
  f.index.refresh(*f.store, f.ask(4096).key);
  CHECK(f.rank(f.ask(4096)).size() == 3);  // both and the default
}

TEST_CASE("another maximum of the SM clock makes no record stale") {
  LookupFixture f;
  f.add({f.record(4096)});
  DeviceClass other = h200_class();
  other.facts.set_max_sm_mhz(other.facts.max_sm_mhz() + 100);
  CHECK(f.best(f.ask(4096, other)).match.exact());
}

}  // namespace
}  // namespace cubind::test
