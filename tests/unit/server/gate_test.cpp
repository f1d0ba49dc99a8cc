#include "server/access/gate.hpp"

#include <catch2/catch.hpp>

#include <filesystem>

#include "access/token_file.hpp"
#include "base/file.hpp"
#include "server/access/unauthenticated.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/manual_clock.hpp"

namespace cubind {
namespace {

using namespace std::chrono_literals;

struct GateFixture {
  GateFixture() { write_token_file(file, {alice.token}); }

  TempDir folder;
  std::filesystem::path file = folder.path() / "tokens.json";
  RealClock clock;
  NewToken alice = issue_token({.name = "alice", .roles = {CallerRole::Tuner}});
};

bool accepts(const Gate& gate, const std::string& text) {
  try {
    gate.caller_of("Bearer " + text);
    return true;
  } catch (const Unauthenticated&) {
    return false;
  }
}

}  // namespace

TEST_CASE_METHOD(GateFixture, "the gate knows a caller by its token and no other text") {
  const Gate gate(file, clock);
  for (int i = 0; i < 2; ++i) {
    CHECK(gate.caller_of("Bearer " + alice.text)->name == "alice");
    CHECK_FALSE(accepts(gate, issue_token({}).text));
    CHECK_FALSE(accepts(gate, alice.text.substr(0, 24) + std::string(64, '0')));
  }
  CHECK_THROWS_AS(gate.caller_of(alice.text), Unauthenticated);
  CHECK_THROWS_WITH(gate.caller_of(""), Catch::Contains("CUBIND_TOKEN_FILE"));
}

TEST_CASE_METHOD(GateFixture, "an expired token is refused also after it was accepted") {
  test::ManualClock now;
  alice.token.expires = now.wall_now() + 2s;
  write_token_file(file, {alice.token});
  const Gate gate(file, now);
  const auto caller = gate.caller_of("Bearer " + alice.text);
  CHECK(gate.admits(*caller));
  now.advance(2s);
  CHECK_THROWS_WITH(gate.caller_of("Bearer " + alice.text), Catch::Contains("has expired at"));
  CHECK_FALSE(gate.admits(*caller));
}

TEST_CASE_METHOD(GateFixture, "a revoked token is refused and a new one is accepted") {
  const Gate gate(file, clock);
  const auto caller = gate.caller_of("Bearer " + alice.text);
  const NewToken bob = issue_token({.name = "bob", .roles = {CallerRole::Reader}});
  write_token_file(file, {bob.token});
  CHECK(test::eventually([&] { return !accepts(gate, alice.text); }));
  CHECK(accepts(gate, bob.text));
  CHECK_FALSE(gate.admits(*caller));
}

TEST_CASE_METHOD(GateFixture, "a damaged token file leaves the tokens as they were and a missing one none") {
  const Gate gate(file, clock, {}, 5ms);
  write_file_atomic(file, "{", 0600);
  std::this_thread::sleep_for(100ms);
  CHECK(accepts(gate, alice.text));
  std::filesystem::remove(file);
  CHECK(test::eventually([&] { return !accepts(gate, alice.text); }));
}

TEST_CASE("without a token file each caller is an admin and with an unreadable one none starts") {
  const RealClock clock;
  CHECK(Gate("", clock).caller_of("")->roles == RoleSet{CallerRole::Admin});
  CHECK_THROWS_AS(Gate("/nonexistent/tokens.json", clock), Error);
}

}  // namespace cubind
