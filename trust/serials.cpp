#include "trust/serials.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "base/unique_fd.hpp"

namespace cubind {
namespace {

constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
constexpr std::size_t kMaxIssuer = 64;

UniqueFd locked(const std::filesystem::path& file) {
  UniqueFd opened(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!opened || ::flock(opened.get(), LOCK_EX) != 0) {
    throw system_error(file.string(), "locking", errno);
  }
  return opened;
}

std::uint64_t highest_in(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) {
    return 0;
  }
  const std::string text = read_file(file, 64);
  const std::string_view number = trimmed(text);
  std::uint64_t serial = 0;
  const auto [end, failed] = std::from_chars(number.data(), number.data() + number.size(), serial);
  if (failed != std::errc() || end != number.data() + number.size()) {
    throw Error(ErrorCode::DataLoss, file.string(),
                "is not the number of a bundle: remove it if any serial of this issuer may be accepted");
  }
  return serial;
}

}  // namespace

bool is_issuer(std::string_view text) {
  return !text.empty() && text.size() <= kMaxIssuer &&
         kLetters.find(text.front()) != std::string_view::npos && std::ranges::all_of(text, [](char c) {
           return kLetters.find(c) != std::string_view::npos || c == '.' || c == '-' || c == '_';
         });
}

void Serials::accept(const std::string& issuer, std::uint64_t serial, const std::string& where) const {
  create_folders(folder_, 0700);
  const UniqueFd lock = locked(folder_ / ".lock");
  const std::filesystem::path file = folder_ / issuer;
  const std::uint64_t highest = highest_in(file);
  if (serial < highest) {
    throw Error(ErrorCode::FailedPrecondition, where,
                "has the serial " + std::to_string(serial) + " of " + issuer + ", and " +
                    std::to_string(highest) + " was accepted before (" + file.string() +
                    "): take the newest bundle");
  }
  if (serial > highest) {
    write_file_atomic(file, std::to_string(serial) + "\n", 0600);
  }
}

}  // namespace cubind
