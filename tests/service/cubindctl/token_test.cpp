// Tokens are issued in a file, without a daemon.
#include <catch2/catch.hpp>

#include "access/token_file.hpp"
#include "base/file.hpp"
#include "base/json.hpp"
#include "tests/service/cubindctl/ctl.hpp"

namespace cubind::test {
namespace {

struct TokenCtl {
  ProgramResult operator()(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "token");
    arguments.insert(arguments.end(), {"--file", file.string()});
    return ctl("unix:///nonexistent", std::move(arguments));
  }

  TempDir folder;
  std::filesystem::path file = folder.path() / "tokens.json";
};

}  // namespace

TEST_CASE("a new token is printed once and the file knows it by its digest") {
  const TokenCtl token;
  const ProgramResult made =
      token({"new", "alice", "--role", "tuner", "--role", "publisher", "--namespace", "team"});
  REQUIRE(made.exit_code == 0);
  const std::vector<Token> tokens = read_token_file(token.file);
  REQUIRE(tokens.size() == 1);
  const std::string text = made.out.substr(0, made.out.find('\n'));
  const auto parts = split_token(text);
  REQUIRE(parts);
  CHECK(is_secret_of(tokens[0], parts->secret));
  CHECK(tokens[0].roles == RoleSet{CallerRole::Tuner, CallerRole::Publisher});
  CHECK(tokens[0].namespaces == Scope{"team"});
  CHECK(tokens[0].expires);
  CHECK(read_file(token.file).find(parts->secret) == std::string::npos);
  CHECK(token({"list"}).out.find(std::string(parts->secret)) == std::string::npos);
}

TEST_CASE("a revoked token leaves the file and the others stay") {
  const TokenCtl token;
  const Json gone = Json::parse(token({"new", "alice", "--role", "reader", "--json"}).out);
  token({"new", "bob", "--role", "admin", "--expires", "never"});
  const std::string id = gone.at("id");
  CHECK(token({"revoke", id}).exit_code == 0);
  const std::vector<Token> tokens = read_token_file(token.file);
  REQUIRE(tokens.size() == 1);
  CHECK(tokens[0].name == "bob");
  CHECK_FALSE(tokens[0].expires);
  const ProgramResult again = token({"revoke", id});
  CHECK(again.exit_code == 4);
  CHECK_THAT(again.err, Catch::Contains("token list"));
}

TEST_CASE("a slip in a new token leaves the file as it was") {
  const TokenCtl token;
  CHECK_THAT(token({"new", "alice", "--role", "tunr"}).err, Catch::Contains("did you mean \"tuner\"?"));
  CHECK_THAT(token({"new", "alice", "--role", "tuner", "--expires", "soon"}).err, Catch::Contains("90d"));
  CHECK_THAT(token({"new", "alice", "--role", "tuner", "--expires", "99999d"}).err, Catch::Contains("90d"));
  const ProgramResult device =
      ctl("unix:///none", {"token", "new", "a", "--role", "tuner", "--file", "/dev/null"});
  CHECK(device.exit_code == 2);
  CHECK_FALSE(std::filesystem::exists("/dev/null.lock"));
  CHECK_THAT(token({"new", "", "--role", "tuner"}).err, Catch::Contains("name: is empty"));
  CHECK_THAT(token({"new", "alice", "--role", "tuner", "--expires", "2020-01-01T00:00:00Z"}).err,
             Catch::Contains("has passed"));
  CHECK_FALSE(std::filesystem::exists(token.file));
}

}  // namespace cubind::test
