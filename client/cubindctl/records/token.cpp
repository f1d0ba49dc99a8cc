#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <iostream>

#include <fcntl.h>
#include <unistd.h>

#include "access/token_file.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/pending_file.hpp"
#include "base/text.hpp"
#include "base/unique_fd.hpp"
#include "client/cubindctl/commands.hpp"
#include "client/cubindctl/terminal/json_output.hpp"
#include "client/cubindctl/terminal/terminal.hpp"
#include "client/cubindctl/terminal/text_table.hpp"

namespace cubind::ctl {
namespace {

using Time = std::chrono::system_clock::time_point;

/// Of a file alone: next to a device it would be left behind.
std::string lock_of(const std::string& file) {
  static_cast<void>(replaceable_file(file));
  return file + ".lock";
}

/// Two commands that change the file at once must not lose the token of one.
class FileLock {
 public:
  explicit FileLock(const std::string& file)
      : opened_(::open(lock_of(file).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    if (!opened_ || ::flock(opened_.get(), LOCK_EX) != 0) {
      throw system_error(file + ".lock", "locking", errno);
    }
    // Made by root, it is for the file's owner too.
    if (struct stat owned{}; ::geteuid() == 0 && ::stat(file.c_str(), &owned) == 0 &&
                             ::fchown(opened_.get(), owned.st_uid, owned.st_gid) != 0) {
      throw system_error(file + ".lock", "changing the owner", errno);
    }
  }

 private:
  UniqueFd opened_;
};

std::vector<Token> read_tokens(const std::string& file) {
  return std::filesystem::exists(file) ? read_token_file(file) : std::vector<Token>();
}

CallerRole role_in(const std::string& name) {
  const auto role = role_of_name(name);
  if (!role) {
    std::vector<std::string> known;
    for (const CallerRole one : kCallerRoles) {
      known.emplace_back(role_name(one));
    }
    throw Error(ErrorCode::InvalidArgument, "--role " + name, "is not a role" + suggestion(name, known));
  }
  return *role;
}

/// "90d", "12h" from now, or a time in UTC; "never" is none.
std::optional<Time> expiry_in(const std::string& text) {
  if (text == "never") {
    return std::nullopt;
  }
  if (const auto time = parse_iso8601_utc(text)) {
    if (*time <= std::chrono::system_clock::now()) {
      throw Error(ErrorCode::InvalidArgument, "--expires " + text, "has passed");
    }
    return time;
  }
  constexpr unsigned kMost = 50'000;  // as days they end before the clock does, in 2262
  unsigned count = 0;
  const char* const end = text.data() + text.size();
  const auto [unit, failed] = std::from_chars(text.data(), end, count);
  const bool is_days = unit + 1 == end && *unit == 'd';
  const bool is_hours = unit + 1 == end && *unit == 'h';
  if (failed != std::errc() || count == 0 || count > kMost || (!is_days && !is_hours)) {
    throw Error(ErrorCode::InvalidArgument, "--expires " + text,
                "is not a time such as 90d, 12h, 2027-03-01T00:00:00Z or never");
  }
  return std::chrono::system_clock::now() + std::chrono::hours((is_days ? 24 : 1) * count);
}

std::string expiry_text(const Token& token) {
  if (!token.expires) {
    return "never";
  }
  return iso8601_utc(*token.expires).substr(0, 16) + "Z" +
         (token.has_expired(std::chrono::system_clock::now()) ? " (expired)" : "");
}

OutputJson token_json(const Token& token) {
  OutputJson roles = OutputJson::array();
  for (const CallerRole role : kCallerRoles) {
    if (token.roles.has(role)) {
      roles.push_back(role_name(role));
    }
  }
  return {{"id", token.id},
          {"name", token.name},
          {"roles", roles},
          {"namespaces", token.namespaces},
          {"device_classes", token.device_classes},
          {"expires", token.expires ? OutputJson(iso8601_utc(*token.expires)) : OutputJson(nullptr)}};
}

}  // namespace

ExitCode run(const TokenNewOptions& options, const CommonOptions& common) {
  Token wanted;
  if (options.name.empty()) {
    throw Error(ErrorCode::InvalidArgument, "name", "is empty: name the token's holder");
  }
  wanted.name = options.name;
  for (const std::string& role : options.roles) {
    wanted.roles.add(role_in(role));
  }
  if (!options.namespaces.empty()) {
    wanted.namespaces = options.namespaces;
  }
  if (!options.device_classes.empty()) {
    wanted.device_classes = options.device_classes;
  }
  wanted.expires = expiry_in(options.expires);
  const FileLock lock(options.file);
  std::vector<Token> tokens = read_tokens(options.file);
  const NewToken issued = issue_token(std::move(wanted));
  tokens.push_back(issued.token);
  write_token_file(options.file, tokens);
  if (common.json) {
    OutputJson json = token_json(issued.token);
    json["token"] = issued.text;
    print_json(json);
  } else {
    std::cerr << "The token of " << issued.token.name << ", shown once. Its holder puts it into a file that "
              << "CUBIND_TOKEN_FILE names:\n";
    std::cout << issued.text << "\n";
  }
  return ExitCode::Ok;
}

ExitCode run(const TokenListOptions& options, const CommonOptions& common) {
  const std::vector<Token> tokens = read_token_file(options.file);
  if (common.json) {
    OutputJson list = OutputJson::array();
    for (const Token& token : tokens) {
      list.push_back(token_json(token));
    }
    print_json({{"tokens", list}});
    return ExitCode::Ok;
  }
  TextTable table({"ID", "NAME", "ROLES", "?NAMESPACES", "??DEVICES", "EXPIRES"});
  for (const Token& token : tokens) {
    table.add({token.id, printable(token.name), token.roles.to_string(),
               printable(join(token.namespaces, ", ")), printable(join(token.device_classes, ", ")),
               expiry_text(token)});
  }
  table.print(std::cout, output_columns());
  return ExitCode::Ok;
}

ExitCode run(const TokenRevokeOptions& options, const CommonOptions& common) {
  const FileLock lock(options.file);
  std::vector<Token> tokens = read_token_file(options.file);
  OutputJson revoked = OutputJson::array();
  for (const std::string& id : options.ids) {
    const auto found = std::ranges::find(tokens, id, &Token::id);
    if (found == tokens.end()) {
      throw Error(ErrorCode::NotFound, options.file,
                  "has no token of the id " + quoted(id) + ": `cubindctl token list` prints the ids");
    }
    revoked.push_back(token_json(*found));
    if (!common.json) {
      std::cout << "revoked " << id << " of " << printable(found->name) << "\n";
    }
    tokens.erase(found);
  }
  write_token_file(options.file, tokens);
  if (common.json) {
    print_json({{"revoked", revoked}});
  }
  return ExitCode::Ok;
}

}  // namespace cubind::ctl
