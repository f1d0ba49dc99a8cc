#include "server/service/saved_work.hpp"

#include <catch2/catch.hpp>

#include "server/store/store.hpp"
#include "tests/unit/server/store_fixture.hpp"

namespace cubind::test {
namespace {

using std::chrono::nanoseconds;

AnswerQuality spared(std::uint32_t compile_ms, std::uint32_t tuning_ms) {
  AnswerQuality quality;
  quality.spared = {true, compile_ms, tuning_ms};
  return quality;
}

}  // namespace

TEST_CASE_METHOD(StoreFixture, "work is spared by answers that give a new artifact without waiting") {
  AnswerCounts answers;
  SavedWork saved(*store, answers);
  answers.answered(spared(40, 3000), AnswerPath::Repeated, nanoseconds(1));
  answers.answered(spared(0, 0), AnswerPath::LookedUp, nanoseconds(1));
  answers.answered(spared(40, 3000), AnswerPath::Waited, nanoseconds(1));
  answers.answered(AnswerQuality(), AnswerPath::LookedUp, nanoseconds(1));
  const Savings now = saved.now();
  CHECK((now.answers == 2 && now.timed == 1 && now.compile_ms == 40 && now.tuning_ms == 3000));
}

TEST_CASE_METHOD(StoreFixture, "what was saved is kept once and added to by the next daemon") {
  AnswerCounts answers;
  std::string since;
  {
    SavedWork saved(*store, answers);
    answers.answered(spared(40, 3000), AnswerPath::LookedUp, nanoseconds(1));
    saved.keep();
    saved.keep();
    CHECK(saved.now().answers == 1);
    since = saved.now().since;
  }
  AnswerCounts later;
  SavedWork saved(*store, later);
  later.answered(spared(2, 0), AnswerPath::LookedUp, nanoseconds(1));
  saved.keep();
  const Savings now = saved.now();
  CHECK((now.answers == 2 && now.compile_ms == 42 && now.tuning_ms == 3000 && now.since == since));
  CHECK_FALSE(since.empty());
}

TEST_CASE_METHOD(StoreFixture, "a job that is unknown has spared no known time") {
  AnswerCounts answers;
  SavedWork saved(*store, answers);
  CHECK(saved.tuning_ms("") == 0);
  CHECK(saved.tuning_ms("unknown") == 0);
}

}  // namespace cubind::test
