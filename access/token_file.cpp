#include "access/token_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <set>

#include "access/owned_file.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/json.hpp"
#include "base/json_node.hpp"
#include "base/pending_file.hpp"
#include "base/text.hpp"

namespace cubind {
namespace {

constexpr std::int64_t kFormat = 1;
constexpr std::uint64_t kMaxBytes = std::uint64_t{16} << 20;

std::string id_of(const JsonNode& node) {
  std::string id = node.as_string();
  if (!is_token_id(id)) {
    node.fail(quoted(id) + " is not an id: 16 lower-case hexadecimal digits");
  }
  return id;
}

Digest digest_of(const JsonNode& node) {
  const auto digest = Digest::from_hex(node.as_string());
  if (!digest) {
    node.fail("is not a SHA-256 digest: 64 hexadecimal digits. `cubindctl token new` makes a token");
  }
  return *digest;
}

RoleSet roles_of(const JsonNode& node) {
  std::vector<std::string> known;
  for (const CallerRole role : kCallerRoles) {
    known.emplace_back(role_name(role));
  }
  RoleSet roles;
  for (const JsonNode& one : node.elements()) {
    roles.add(kCallerRoles.at(one.as_choice(known)));
  }
  if (roles.empty()) {
    node.fail("names no role");
  }
  return roles;
}

Scope scope_of(const JsonNode& node) {
  Scope scope;
  for (const JsonNode& one : node.elements()) {
    scope.push_back(one.as_string());
  }
  if (scope.empty()) {
    node.fail(R"(names none: ["*"] stands for all)");
  }
  return scope;
}

std::chrono::system_clock::time_point time_of(const JsonNode& node) {
  const auto time = parse_iso8601_utc(node.as_string());
  if (!time) {
    node.fail(quoted(node.as_string()) + " is not a time in UTC such as 2027-03-01T00:00:00Z");
  }
  return *time;
}

Token token_of(const JsonNode& node) {
  node.expect_keys({"id", "name", "secret_sha256", "roles", "namespaces", "device_classes", "expires"});
  Token token;
  token.id = id_of(node.at("id"));
  token.name = node.at("name").as_nonempty_string();
  token.secret = digest_of(node.at("secret_sha256"));
  token.roles = roles_of(node.at("roles"));
  token.namespaces = scope_of(node.at("namespaces"));
  token.device_classes = scope_of(node.at("device_classes"));
  if (const auto expires = node.find("expires")) {
    token.expires = time_of(*expires);
  }
  return token;
}

Json json_of(const Token& token) {
  Json roles = Json::array();
  for (const CallerRole role : kCallerRoles) {
    if (token.roles.has(role)) {
      roles.push_back(role_name(role));
    }
  }
  Json json{{"id", token.id},
            {"name", token.name},
            {"secret_sha256", token.secret.hex()},
            {"roles", std::move(roles)},
            {"namespaces", token.namespaces},
            {"device_classes", token.device_classes}};
  if (token.expires) {
    json["expires"] = iso8601_utc(*token.expires);
  }
  return json;
}

}  // namespace

std::vector<Token> parse_tokens(std::string_view text, const std::string& file) {
  JsonLimits limits;
  limits.max_bytes = kMaxBytes;
  const OrderedJson document = parse_json_strict(text, file, limits);
  const JsonNode root(document, file);
  root.expect_keys({"version", "tokens"});
  root.at("version").as_int64(kFormat, kFormat);
  std::vector<Token> tokens;
  std::set<std::string> ids;
  for (const JsonNode& node : root.at("tokens").elements()) {
    tokens.push_back(token_of(node));
    if (!ids.insert(tokens.back().id).second) {
      node.at("id").fail("another token has this id");
    }
  }
  return tokens;
}

std::string print_tokens(const std::vector<Token>& tokens) {
  Json list = Json::array();
  for (const Token& token : tokens) {
    list.push_back(json_of(token));
  }
  return Json{{"version", kFormat}, {"tokens", std::move(list)}}.dump(2) + "\n";
}

std::vector<Token> read_token_file(const std::filesystem::path& file) {
  refuse_foreign_writers(file, "make themselves admins");
  return parse_tokens(read_file(file, kMaxBytes), file.string());
}

void write_token_file(const std::filesystem::path& file, const std::vector<Token>& tokens) {
  struct stat before {};
  const bool was_there = ::stat(file.c_str(), &before) == 0;
  const std::string text = print_tokens(tokens);
  parse_tokens(text, file.string());  // one token that cannot be read would lock out the holders of all
  write_file_atomic(replaceable_file(file), text, 0600);
  // Under sudo the file stays its owner's, whose daemon has to read it.
  if (was_there && ::geteuid() == 0 && ::chown(file.c_str(), before.st_uid, before.st_gid) != 0) {
    throw system_error(file.string(), "chown", errno);
  }
}

}  // namespace cubind
