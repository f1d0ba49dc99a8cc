// One flipped bit of a file at a time.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/random.hpp"
#include "base/unique_fd.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>

namespace cubind::test {

/// CUBIND_FLIPS, or how many flips a test that runs with the others makes.
inline std::size_t wanted_flips(std::size_t otherwise) {
  const char* variable = std::getenv("CUBIND_FLIPS");
  return variable ? std::strtoul(variable, nullptr, 10) : otherwise;
}

/// CUBIND_SEED, so that several runs at a time make other flips.
inline std::uint64_t wanted_seed(std::uint64_t otherwise) {
  const char* variable = std::getenv("CUBIND_SEED");
  return variable ? std::strtoull(variable, nullptr, 10) : otherwise;
}

/// A store as it was when its daemon had ended.
class StoreImage {
 public:
  explicit StoreImage(std::filesystem::path path)
      : path_(std::move(path)),
        mark_(path_.parent_path() / ("." + path_.filename().string() + ".generation")),
        bytes_(read_file(path_)),
        mark_bytes_(read_file(mark_)) {}

  /// Puts the store back, into the same file, but for one bit of those that hold something. Says which.
  std::string put_flipped(Random& random) const {
    std::string bytes = bytes_;
    std::size_t at = 0;
    do {
      at = random.below(bytes.size());
    } while (!is_used(at));
    const auto bit = random.below(8);
    bytes[at] = static_cast<char>(static_cast<unsigned char>(bytes[at]) ^ (1u << bit));
    remove_leftovers();
    overwrite(path_, bytes);
    overwrite(mark_, mark_bytes_);
    return "byte " + std::to_string(at) + " (page " + std::to_string(at / kPage + 1) + ", offset " +
           std::to_string(at % kPage) + "), bit " + std::to_string(bit);
  }

 private:
  static constexpr std::size_t kPage = 4096;

  // A row's zeros stand next to what is not zero, free space does not.
  bool is_used(std::size_t at) const {
    constexpr std::size_t kBeside = 8;
    const std::size_t from = at - std::min(at, kBeside);
    const std::string_view around = std::string_view(bytes_).substr(from, 2 * kBeside);
    return std::ranges::any_of(around, [](char byte) { return byte != 0; });
  }

  // What an earlier daemon has left: its journal, and stores that were put aside.
  void remove_leftovers() const {
    for (const auto& item : std::filesystem::directory_iterator(path_.parent_path())) {
      const std::string name = item.path().filename();
      if (name.starts_with(path_.filename().string() + "-") || name.find(".damaged-") != std::string::npos) {
        std::filesystem::remove(item.path());
      }
    }
  }

  // Another file would be taken for a copy.
  static void overwrite(const std::filesystem::path& path, const std::string& bytes) {
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!fd || ::write(fd.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
      throw system_error(path.string(), "write", errno);
    }
  }

  std::filesystem::path path_, mark_;
  std::string bytes_, mark_bytes_;
};

}  // namespace cubind::test
