#include "server/access/audit_log.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/json.hpp"

namespace cubind {
namespace {

AuditEntry refusal_of(Call call, std::string why) { return {call, "", "p", "", std::move(why)}; }

}  // namespace

TEST_CASE("each line of an audit log says who did what and how it ended") {
  const TempDir folder;
  const RealClock clock;
  const auto file = folder.path() / "audit.jsonl";
  const AuditLog log(file, clock);
  log.admitted({Call::Tune, "alice", "ipv4:10.0.0.7:1", "team", ""});
  log.refused(refusal_of(Call::ImportTable, "token: \"x\"\n\xff"));
  const std::string text = read_file(file);
  const Json first = Json::parse(text.substr(0, text.find('\n')));
  CHECK(first.at("call") == "Tune");
  CHECK(first.at("caller") == "alice");
  CHECK(first.at("namespace") == "team");
  CHECK(first.at("outcome") == "admitted");
  CHECK(is_iso8601_utc(first.at("time").get<std::string>()));
  CHECK(Json::parse(text.substr(text.find('\n') + 1)).at("outcome") == "token: \"x\"\n?");
}

TEST_CASE("a flood of refused calls does not fill the audit log") {
  const TempDir folder;
  const RealClock clock;
  const auto file = folder.path() / "audit.jsonl";
  const AuditLog log(file, clock);
  for (int i = 0; i < 5000; ++i) {
    log.refused(refusal_of(Call::Tune, "token: none"));
  }
  const std::string text = read_file(file);
  CHECK(std::ranges::count(text, '\n') >= AuditLog::kMostRefusals);
  CHECK(std::ranges::count(text, '\n') < 5000);
}

TEST_CASE("a flood of callers without a token keeps no other refusal out of the audit log") {
  const TempDir folder;
  const RealClock clock;
  const auto file = folder.path() / "audit.jsonl";
  const AuditLog log(file, clock);
  for (int i = 0; i < 5000; ++i) {
    log.refused(refusal_of(Call::Tune, "token: none"));
  }
  log.refused({Call::Tune, "alice (token 9f3c2ab811d04e57)", "p", "", "Tune: needs the role tuner"});
  CHECK_THAT(read_file(file), Catch::Contains("alice"));
}

TEST_CASE("an audit log that cannot be opened is a fault") {
  const RealClock clock;
  CHECK_THROWS_WITH(AuditLog("/nonexistent/audit.jsonl", clock),
                    Catch::StartsWith("--audit-log /nonexistent"));
  CHECK_NOTHROW(AuditLog("", clock));
}

}  // namespace cubind
