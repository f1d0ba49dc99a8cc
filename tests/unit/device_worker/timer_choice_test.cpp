#include "tuner/worker/timer_choice.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"

namespace cubind::worker {
namespace {

class NamedTimer final : public Timer {
 public:
  explicit NamedTimer(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_; }
  double tick_us() const override { return 1; }
  std::vector<double> measure(const TimedWork&, unsigned) override { return {}; }

 private:
  std::string name_;
};

TimerMakers both() {
  return {[] { return std::make_unique<NamedTimer>("cupti"); },
          [] { return std::make_unique<NamedTimer>("graph"); }};
}

TimerMakers with_failing_cupti(ErrorCode code) {
  TimerMakers makers = both();
  makers.cupti = [code]() -> std::unique_ptr<Timer> { throw Error(code, "CUPTI", "gave no records"); };
  return makers;
}

TEST_CASE("CUPTI times kernels where it works") {
  for (const char* wanted : {"", "cupti"}) {
    const ChosenTimer chosen = choose_timer(wanted, both(), "");
    CHECK(chosen.timer->name() == "cupti");
    CHECK(chosen.note.empty());
  }
}

TEST_CASE("graphs of repeats take the place of a CUPTI that is missing") {
  TimerMakers makers = both();
  makers.cupti = nullptr;
  const ChosenTimer chosen = choose_timer("", makers, "there is no libcupti");
  CHECK(chosen.timer->name() == "graph");
  CHECK(chosen.note == "there is no libcupti");
}

TEST_CASE("graphs of repeats take the place of a CUPTI whose records do not come") {
  const ChosenTimer chosen = choose_timer("", with_failing_cupti(ErrorCode::Unavailable), "");
  CHECK(chosen.timer->name() == "graph");
  CHECK(chosen.note == "CUPTI: gave no records");
}

TEST_CASE("a CUPTI that was asked for has no substitute") {
  CHECK_THROWS_WITH(choose_timer("cupti", with_failing_cupti(ErrorCode::Unavailable), ""),
                    Catch::Matchers::Contains("open.timer: CUPTI: gave no records"));
}

TEST_CASE("another fault of CUPTI is no reason to time otherwise") {
  CHECK_THROWS_AS(choose_timer("", with_failing_cupti(ErrorCode::Internal), ""), Error);
}

}  // namespace
}  // namespace cubind::worker
