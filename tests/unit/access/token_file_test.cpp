#include "access/token_file.hpp"

#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "tests/support/refusal_of.hpp"

namespace cubind {
namespace {

Token sample() {
  Token token = issue_token({.name = "ci"}).token;
  token.roles = {CallerRole::Tuner, CallerRole::Publisher};
  token.namespaces = {"team", ""};
  token.expires = parse_iso8601_utc("2027-03-01T00:00:00Z");
  return token;
}

std::string fault_of(const std::string& text) {
  return test::message_of([&] { parse_tokens(text, "tokens.json"); });
}

}  // namespace

TEST_CASE("tokens are read as they were written") {
  const std::vector<Token> tokens{sample(), issue_token({.name = "ops", .roles = {CallerRole::Admin}}).token};
  CHECK(parse_tokens(print_tokens(tokens), "tokens.json") == tokens);
}

TEST_CASE("a slip in the token file is refused at its place") {
  const std::string text = print_tokens({sample()});
  const auto with = [&](std::string_view from, std::string_view to) {
    return fault_of(replaced(text, from, to));
  };
  CHECK_THAT(with("\"tuner\"", "\"tunr\""), Catch::StartsWith("tokens.json /tokens/0/roles/0: "));
  CHECK_THAT(with("\"namespaces\"", "\"namespace\""), Catch::Contains("/tokens/0/namespace: unexpected key"));
  CHECK_THAT(with("2027-03-01", "2027-02-30"), Catch::StartsWith("tokens.json /tokens/0/expires: "));
  CHECK_THAT(with("\"version\": 1", "\"version\": 2"), Catch::StartsWith("tokens.json /version: "));
  CHECK_THAT(with("\"secret_sha256\": \"", "\"secret_sha256\": \"0"),
             Catch::StartsWith("tokens.json /tokens/0/secret_sha256: "));
  CHECK_THAT(fault_of(R"({"version": 1, "tokens": [{"id": "0123456789abcdef"}]})"), Catch::Contains("name"));
}

TEST_CASE("two tokens of one id are refused") {
  const Token token = sample();
  CHECK_THAT(fault_of(print_tokens({token, token})), Catch::StartsWith("tokens.json /tokens/1/id: "));
}

TEST_CASE("the token file is written for its owner alone and refused if others may write to it") {
  const TempDir folder;
  const auto file = folder.path() / "tokens.json";
  write_token_file(file, {sample()});
  struct stat info {};
  REQUIRE(::stat(file.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  CHECK(read_token_file(file).size() == 1);
  REQUIRE(::chmod(file.c_str(), 0620) == 0);
  CHECK_THROWS_AS(read_token_file(file), Error);
}

TEST_CASE("tokens that could not be read again are not written") {
  const TempDir folder;
  const auto file = folder.path() / "tokens.json";
  const Token token = sample();
  write_token_file(file, {token});
  Token nameless = sample();
  nameless.name = "";
  CHECK_THROWS_AS(write_token_file(file, {token, nameless}), Error);
  CHECK(read_token_file(file) == std::vector<Token>{token});
}

TEST_CASE("a link to the token file stays one") {
  const TempDir folder;
  const auto file = folder.path() / "tokens.json", link = folder.path() / "link.json";
  write_token_file(file, {});
  std::filesystem::create_symlink("tokens.json", link);
  write_token_file(link, {sample()});
  CHECK(std::filesystem::is_symlink(link));
  CHECK(read_token_file(file).size() == 1);
}

}  // namespace cubind
