#include "trust/trust_file.hpp"

#include <algorithm>
#include <sstream>

#include "access/owned_file.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/text.hpp"

namespace cubind {
namespace {

constexpr std::uint64_t kMaxTrustBytes = std::uint64_t{1} << 20;
constexpr std::string_view kNoName = "-", kEvery = "*";

std::vector<std::string> namespaces_of(const std::string& text) {
  std::vector<std::string> names;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    names.push_back(part == kNoName ? "" : part);
  }
  return names;
}

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  std::istringstream text(line);
  for (std::string word; text >> word;) {
    words.push_back(word);
  }
  return words;
}

}  // namespace

const TrustedKey& Trust::key_of(const KeyId& id, std::chrono::system_clock::time_point now,
                                const std::string& where) const {
  const auto found =
      std::ranges::find(keys_, id, [](const TrustedKey& one) -> const KeyId& { return one.key.id(); });
  if (found == keys_.end()) {
    throw Error(ErrorCode::PermissionDenied, where,
                "is signed by the key " + id.text() + ", which " + file_ +
                    " does not list: add its line there only if you know whose key it is");
  }
  if (found->expires <= now) {
    throw Error(ErrorCode::PermissionDenied, where,
                "is signed by the key " + id.text() + " of " + found->name + ", which has expired in " +
                    file_ + " on " + day_text(found->expires) + ": ask " + found->name + " for a newer one");
  }
  return *found;
}

void Trust::require_namespace(const TrustedKey& key, std::string_view name_space,
                              const std::string& where) const {
  const bool may = std::ranges::any_of(
      key.namespaces, [&](const std::string& one) { return one == kEvery || one == name_space; });
  if (!may) {
    throw Error(ErrorCode::PermissionDenied, where,
                "the key " + key.key.id().text() + " of " + key.name + " may not sign for the namespace " +
                    quoted(name_space) + " by " + file_);
  }
}

Trust parse_trust(std::string_view text, const std::string& file) {
  std::vector<TrustedKey> keys;
  std::istringstream lines{std::string(text)};
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string where = file + " line " + std::to_string(++number);
    const auto words = words_of(line);
    if (words.empty() || words.front().starts_with('#')) {
      continue;
    }
    if (words.size() != 4) {
      throw Error(ErrorCode::InvalidArgument, where,
                  "has " + std::to_string(words.size()) +
                      " words instead of four: key, name, day of expiry, namespaces (\"*\": all)");
    }
    keys.push_back({PublicKey::parse(words[0], where), words[1], parse_expiry(words[2], where),
                    namespaces_of(words[3])});
    if (std::ranges::count(keys, keys.back().key.id(), [](const TrustedKey& one) { return one.key.id(); }) >
        1) {
      throw Error(ErrorCode::InvalidArgument, where,
                  "lists the key " + keys.back().key.id().text() + " a second time");
    }
  }
  if (keys.empty()) {
    throw Error(ErrorCode::InvalidArgument, file, "lists no key, so that nothing would be accepted");
  }
  return {std::move(keys), file};
}

Trust read_trust_file(const std::filesystem::path& file) {
  const std::string text = read_file(file, kMaxTrustBytes);
  refuse_foreign_writers(file, "decide what code is run");
  return parse_trust(text, file.string());
}

std::chrono::system_clock::time_point parse_expiry(const std::string& text, const std::string& where) {
  const bool is_day = text.find('T') == std::string::npos;
  const auto time = parse_iso8601_utc(is_day ? text + "T00:00:00Z" : text);
  if (!time) {
    throw Error(ErrorCode::InvalidArgument, where,
                quoted(text) + " is not a day such as 2027-03-01 or a time in UTC");
  }
  return *time;
}

std::string day_text(std::chrono::system_clock::time_point time) { return iso8601_utc(time).substr(0, 10); }

}  // namespace cubind
