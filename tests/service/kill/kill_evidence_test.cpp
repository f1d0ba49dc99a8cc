// The judge of the kill tests finds what it is there to find.
#include <catch2/catch.hpp>

#include "tests/service/kill/kill_evidence.hpp"
#include "tests/support/facts.hpp"
#include "tests/support/tiny_kernel.hpp"
#include "tuner/table/table_samples.hpp"

namespace cubind::test {
namespace {

const Problem kProblem = tiny_problem(2);

// One trial with a screening block of one sample and one of two, and rounds; and the log of measuring it.
struct Example {
  explicit Example(std::size_t rounds = 2) : played(tiny_table({kProblem})), stored(played) {
    stored.trials.resize(1);
    TableTrial& trial = stored.trials[0];
    key = trial.context.trial.hex();
    const std::vector<double> screening = samples_of(trial.screening), finals = samples_of(trial.finals);
    trial.screening = {block_of({screening[0]}), block_of({screening[1], screening[2]})};
    trial.finals.clear();
    log = {key + " SCREEN 0 1", key + " SCREEN 1 2"};
    acknowledged = {key + " SCREEN 0", key + " SCREEN 1"};
    for (std::size_t round = 0; round < rounds; ++round) {
      trial.finals.push_back(block_of({finals.at(round)}));
      log.push_back(key + " FINAL " + std::to_string(round) + " 1");
      acknowledged.push_back(key + " FINAL " + std::to_string(round));
    }
  }
  KillEvidence judged() const {
    return gather_evidence(log, acknowledged, stored, played).at(to_string(kProblem));
  }

  Table played, stored;
  std::string key;
  std::vector<std::string> log, acknowledged;
};

TEST_CASE("what was measured once and stored once is no fault") {
  const KillEvidence evidence = Example().judged();
  CHECK(evidence.faults.empty());
  CHECK(evidence.measured == 4);
  CHECK(evidence.stored == 4);
  CHECK(evidence.repeated == 0);
}

TEST_CASE("what was in flight may be measured again") {
  Example example;
  example.log.push_back(example.key + " FINAL 1 1");
  CHECK(example.judged().faults.empty());
  CHECK(example.judged().repeated == 1);
}

TEST_CASE("as many measurements as a kill may cost may be repeated and one more is a fault") {
  constexpr std::size_t kRounds = kMostLost - 1;
  Example example(kRounds);
  for (std::size_t round = 0; round < kRounds; ++round) {
    example.log.push_back(example.key + " FINAL " + std::to_string(round) + " 1");
  }
  example.log.push_back(example.key + " SCREEN 1 2");
  CHECK(example.judged().faults.empty());
  CHECK(example.judged().measurements == kMostLost);
  example.log.push_back(example.key + " SCREEN 0 1");
  CHECK_FALSE(example.judged().faults.empty());
}

TEST_CASE("a block measured three times is a fault") {
  Example example;
  example.log.insert(example.log.end(), 2, example.key + " SCREEN 0 1");
  CHECK_FALSE(example.judged().faults.empty());
}

TEST_CASE("a measured block that is not stored is a fault") {
  Example example;
  example.stored.trials[0].finals.pop_back();
  CHECK_FALSE(example.judged().faults.empty());
}

TEST_CASE("a block stored twice is a fault") {
  Example example;
  example.stored.trials[0].finals.push_back(example.stored.trials[0].finals.back());
  CHECK_FALSE(example.judged().faults.empty());
}

TEST_CASE("a block that is measured after its acknowledgement is a fault") {
  Example example;
  example.log.push_back(example.key + " FINAL 1 1");
  example.acknowledged.push_back(example.key + " FINAL 1");
  CHECK_FALSE(example.judged().faults.empty());
}

TEST_CASE("a lost block whose successors are stored is a fault") {
  Example example;
  example.stored.trials[0].screening.erase(example.stored.trials[0].screening.begin());
  CHECK_FALSE(example.judged().faults.empty());
}

}  // namespace
}  // namespace cubind::test
