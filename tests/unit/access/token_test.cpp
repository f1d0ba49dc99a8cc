#include "access/token.hpp"

#include <catch2/catch.hpp>

namespace cubind {

TEST_CASE("an issued token is known by its text and by no other") {
  const NewToken issued = issue_token({.name = "alice"});
  const auto parts = split_token(issued.text);
  REQUIRE(parts);
  CHECK(parts->id == issued.token.id);
  CHECK(is_secret_of(issued.token, parts->secret));
  std::string wrong(parts->secret);
  wrong.back() = wrong.back() == '0' ? '1' : '0';
  CHECK_FALSE(is_secret_of(issued.token, wrong));
  CHECK(issued.token.secret != issue_token({.name = "alice"}).token.secret);
}

TEST_CASE("only the exact form of a token is taken apart") {
  const std::string text = issue_token({}).text;
  CHECK(split_token(text));
  for (const std::string& other :
       {text + "0", text.substr(1), "cubind-" + text.substr(7), std::string(),
        text.substr(0, text.size() - 1) + "G", text.substr(0, 23) + "-" + text.substr(24)}) {
    CAPTURE(other);
    CHECK_FALSE(split_token(other));
  }
}

TEST_CASE("a tuner acts as a reader too and an admin as everyone") {
  CHECK(RoleSet{CallerRole::Tuner}.includes(CallerRole::Reader));
  CHECK_FALSE(RoleSet{CallerRole::Reader}.includes(CallerRole::Tuner));
  for (const CallerRole role : {CallerRole::Reader, CallerRole::Tuner}) {
    CHECK_FALSE(RoleSet{CallerRole::Publisher}.includes(role));
    CHECK_FALSE(RoleSet{CallerRole::Agent}.includes(role));
  }
  for (const CallerRole role : kCallerRoles) {
    CHECK(RoleSet{CallerRole::Admin}.includes(role));
    CHECK(role_of_name(role_name(role)) == role);
  }
}

TEST_CASE("a scope covers what it names and the star covers all") {
  CHECK(covers({"*"}, "anything"));
  CHECK(covers({"a", "b"}, "b"));
  CHECK_FALSE(covers({"a", "b"}, ""));
  CHECK(covers({""}, ""));
  CHECK_FALSE(covers({}, "a"));
}

}  // namespace cubind
