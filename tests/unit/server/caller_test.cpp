#include "server/access/caller.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"

namespace cubind {
namespace {

Caller caller_with(RoleSet roles, Scope namespaces) {
  Token token = issue_token({.name = "alice", .roles = roles}).token;
  token.namespaces = std::move(namespaces);
  return caller_of_token(token);
}

/// What docs/team.md promises, written a second time.
bool is_promised(CallerRole role, std::string_view call) {
  const bool publishes = call == "ImportTable";
  const bool copies = call == "Backup";
  const bool serves = call == "Serve" || call == "PutArtifact";
  const bool works = call == "Tune" || call == "CheckKernel" || call == "CancelJob" ||
                     call == "ForgetFaults" || call == "DefineKernel" || call == "Evaluate" ||
                     call == "ReportComparison";
  switch (role) {
    case CallerRole::Reader:
      return !publishes && !serves && !works && !copies;
    case CallerRole::Tuner:
      return !publishes && !serves && !copies;
    case CallerRole::Publisher:
      return publishes;
    case CallerRole::Agent:
      return serves || call == "GetArtifact";
    case CallerRole::Admin:
      return true;
  }
  return false;
}

}  // namespace

TEST_CASE("each role may make its calls and no others") {
  CHECK(call_rules().size() == 21);
  for (const CallRule& rule : call_rules()) {
    for (const CallerRole role : kCallerRoles) {
      CAPTURE(rule.name, role_name(role));
      const bool promised = is_promised(role, rule.name);
      const Caller caller = caller_with({role}, {"team"});
      CHECK(may(caller, rule.call) == promised);
    }
  }
}

TEST_CASE("a refusal names the call and the role it needs and the caller") {
  const Caller caller = caller_with({CallerRole::Reader}, {"team"});
  CHECK_THROWS_WITH(
      require(caller, Call::Tune),
      Catch::StartsWith("Tune: needs the role tuner, and alice (token " + caller.token + ") is reader"));
  CHECK_THROWS_WITH(require_namespace(caller, Call::GetVariant, "other"),
                    Catch::Contains("\"other\" is not open to alice") && Catch::Contains("\"team\""));
  CHECK_NOTHROW(require_namespace(caller, Call::GetVariant, "team"));
  CHECK_THROWS_AS(require_all_namespaces(caller, Call::ExportTable, "name one"), Error);
}

TEST_CASE("an agent may offer the device classes of its token") {
  Token token;
  token.device_classes = {"nvidia-h200"};
  CHECK_NOTHROW(require_device_class(caller_of_token(token), "nvidia-h200"));
  CHECK_THROWS_WITH(require_device_class(caller_of_token(token), "nvidia-h100"),
                    Catch::Contains("\"nvidia-h100\" is not open"));
}

}  // namespace cubind
