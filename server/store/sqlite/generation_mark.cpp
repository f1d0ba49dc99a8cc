#include "server/store/sqlite/generation_mark.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <optional>

#include "base/digest.hpp"
#include "base/error.hpp"
#include "base/log.hpp"

namespace cubind::store {
namespace {

constexpr std::size_t kIdLength = 64;
constexpr std::size_t kNumberLength = 20;
constexpr std::size_t kLength = kIdLength + 1 + kNumberLength + 1;

// One short line of fixed length, so that a kill leaves the old one or the new one.
std::string line_of(const Generation& generation) {
  const std::string number = std::to_string(generation.number);
  return Digest::of(generation.store_id).hex() + " " + std::string(kNumberLength - number.size(), '0') +
         number + "\n";
}

std::filesystem::path mark_of(const std::filesystem::path& store) {
  return store.parent_path() / ("." + store.filename().string() + ".generation");
}

}  // namespace

bool GenerationMark::was_set_for(const std::filesystem::path& store) {
  std::error_code failed;
  return std::filesystem::file_size(mark_of(store), failed) == kLength && !failed;
}

GenerationMark::GenerationMark(const std::filesystem::path& store)
    : path_(mark_of(store)), fd_(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)) {
  if (!fd_) {
    throw system_error(path_, "open", errno);
  }
}

bool GenerationMark::is_ahead_of(const Generation& found) const {
  std::array<char, kLength> line{};
  if (::pread(fd_.get(), line.data(), line.size(), 0) != static_cast<ssize_t>(line.size())) {
    return false;
  }
  const std::string_view text(line.data(), line.size());
  std::uint64_t number = 0;
  std::from_chars(line.data() + kIdLength + 1, line.data() + kIdLength + 1 + kNumberLength, number);
  return text.substr(0, kIdLength) != Digest::of(found.store_id).hex() || number > found.number;
}

void GenerationMark::set(const Generation& generation) {
  if (generation == last_) {
    return;
  }
  const std::string line = line_of(generation);
  if (::pwrite(fd_.get(), line.data(), line.size(), 0) != static_cast<ssize_t>(line.size())) {
    log_warning(path_ +
                ": not written: the daemon will not notice if an older copy of the store is put back");
  }
  last_ = generation;
}

}  // namespace cubind::store
