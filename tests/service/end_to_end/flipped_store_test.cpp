// The whole chain on a store with a flipped bit: what is damaged is measured or compiled again, and no
// answer has another cubin. CUBIND_FLIPS=50 is the acceptance run.
#include <catch2/catch.hpp>

#include <iostream>
#include <set>

#include "base/zstd.hpp"
#include "plan/wire.hpp"
#include "tests/support/flipped_bits.hpp"
#include "tests/support/tiny_daemon.hpp"

namespace cubind::test {
namespace {

constexpr std::size_t kChainFlips = 2;
const std::vector<Problem> kTunedTwo = {tiny_problem(2), tiny_problem(3)};

struct TunedChain {
  TunedChain() {
    const Connection connection = daemon->connect();
    tune(connection, kTunedTwo);
    const Table all = read_table(export_everything(connection), "export");
    for (const TableTrial& trial : all.trials) {
      compiled.insert(to_string(trial.context.configuration) + " " + trial.context.artifact.hex());
    }
    for (const Problem& problem : kTunedTwo) {
      sound.push_back(answer(connection, problem));
    }
    REQUIRE(daemon->stop().has_value());
  }

  /// Configuration and cubin, which was compiled for that configuration and has its digest.
  std::string answer(const Connection& connection, const Problem& problem) {
    v1::GetVariantRequest asked = question(connection, problem);
    asked.set_compile_wait_ms(60'000);
    const v1::GetVariantReply reply = connection.get_variant(asked, kPatience);
    const std::string digest = Digest::from_bytes(reply.artifact().digest()).value().hex();
    CHECK(Digest::of(zstd_decompress(reply.artifact().zstd_cubin(), reply.artifact().cubin_bytes())).hex() ==
          digest);
    std::string text =
        to_string(configuration_from_wire(reply.configuration(), "configuration")) + " " + digest;
    CHECK(compiled.contains(text));
    return reply.provenance().departures_size() == 0 ? text : text + ", which departs";
  }

  TinyDaemon daemon{{.problems = kTunedTwo}};
  std::set<std::string> compiled;
  std::vector<std::string> sound;
};

TEST_CASE(
    "a daemon whose store has a flipped bit starts and serves no other cubin and measures what is lost") {
  TunedChain chain;
  const StoreImage image(chain.daemon->store());
  Random random(wanted_seed(77));
  std::size_t worse = 0;
  const std::size_t flips = wanted_flips(kChainFlips);
  for (std::size_t i = 0; i < flips; ++i) {
    INFO("flip " << i << ": " << image.put_flipped(random));
    std::filesystem::remove(chain.daemon.folder() / "daemon/log");
    REQUIRE_NOTHROW(chain.daemon->start());
    const Connection connection = chain.daemon->connect();
    bool same = true;
    for (std::size_t k = 0; k < kTunedTwo.size(); ++k) {
      same = chain.answer(connection, kTunedTwo[k]) == chain.sound[k] && same;
    }
    if (!same) {
      ++worse;
      CHECK_THAT(chain.daemon->log(), Catch::Contains(" error: ") || Catch::Contains(" warning: "));
      tune(connection, kTunedTwo);
      for (std::size_t k = 0; k < kTunedTwo.size(); ++k) {
        CHECK(chain.answer(connection, kTunedTwo[k]) == chain.sound[k]);
      }
    }
    REQUIRE(chain.daemon->stop().has_value());
  }
  std::cout << flips << " flipped bits: " << flips - worse << " times the same answers, " << worse
            << " times worse ones until the problems were tuned again\n";
}

}  // namespace
}  // namespace cubind::test
