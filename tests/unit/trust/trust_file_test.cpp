#include "trust/trust_file.hpp"

#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "tests/support/refusal_of.hpp"
#include "tests/support/signing_keys.hpp"

namespace cubind {
namespace {

std::string fault_of(const std::string& text) {
  return test::message_of([&] { parse_trust(text, "trust"); });
}

const auto kNow = *parse_iso8601_utc("2026-12-01T00:00:00Z");
const KeyId kId = test::signing_key().public_key().id();

}  // namespace

TEST_CASE("a trust file lists keys with their day of expiry and namespaces") {
  const Trust trust = parse_trust("# ours\n\n" + test::trust_line("2027-03-01", "team,-"), "trust");
  const TrustedKey& key = trust.key_of(kId, kNow, "F");
  CHECK(key.name == "acme");
  CHECK(key.key == PublicKey::parse(test::kPublicKey, "key"));
  CHECK(key.namespaces == std::vector<std::string>{"team", ""});
  CHECK(iso8601_utc(key.expires) == "2027-03-01T00:00:00.000Z");
}

TEST_CASE("a key that is not listed is refused by its id") {
  const Trust trust = parse_trust(test::trust_line(), "trust");
  CHECK_THROWS_WITH(trust.key_of(test::other_signing_key().public_key().id(), kNow, "F"),
                    Catch::StartsWith("F: is signed by the key CD2FD7FDD14E9A57, which trust does not list"));
}

TEST_CASE("a key is refused from its day of expiry on") {
  const Trust trust = parse_trust(test::trust_line("2026-12-01"), "trust");
  CHECK_NOTHROW(trust.key_of(kId, kNow - std::chrono::seconds(1), "F"));
  CHECK_THROWS_WITH(trust.key_of(kId, kNow, "F"),
                    Catch::Contains("of acme, which has expired in trust on 2026-12-01"));
}

TEST_CASE("a key signs for its namespaces alone") {
  const Trust trust = parse_trust(test::trust_line("2027-03-01", "team,-"), "trust");
  const TrustedKey& key = trust.key_of(kId, kNow, "F");
  CHECK_NOTHROW(trust.require_namespace(key, "team", "F"));
  CHECK_NOTHROW(trust.require_namespace(key, "", "F"));
  CHECK_THROWS_WITH(trust.require_namespace(key, "other", "F"),
                    Catch::Contains("may not sign for the namespace \"other\" by trust"));
}

TEST_CASE("a slip in a trust file is refused at its line") {
  CHECK_THAT(fault_of(""), Catch::StartsWith("trust: lists no key"));
  CHECK_THAT(fault_of("\n" + std::string(test::kPublicKey) + " acme 2027-03-01\n"),
             Catch::StartsWith("trust line 2: has 3 words instead of four"));
  CHECK_THAT(fault_of(test::trust_line("2027-02-30")),
             Catch::StartsWith("trust line 1: \"2027-02-30\" is not"));
  CHECK_THAT(fault_of(test::trust_line() + test::trust_line()),
             Catch::StartsWith("trust line 2: lists the key 1FD02E9933C7BA93 a second time"));
  CHECK_THAT(fault_of("RWSTus acme 2027-03-01 *\n"), Catch::StartsWith("trust line 1: \"RWSTus\" is not"));
}

TEST_CASE("a trust file that others may write to is refused") {
  const TempDir folder;
  const auto file = folder.path() / "trust";
  write_file_atomic(file, test::trust_line());
  CHECK(read_trust_file(file).keys().size() == 1);
  ::chmod(file.c_str(), 0666);
  CHECK_THROWS_WITH(read_trust_file(file), Catch::Contains("and so decide what code is run: chown it"));
}

}  // namespace cubind
