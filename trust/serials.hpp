#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace cubind {

/// 1 to 64 letters, digits, dots, dashes and underscores, the first a letter or digit.
bool is_issuer(std::string_view text);

/// The highest serial that was accepted of each issuer, in a folder: an older bundle, which its issuer has
/// replaced, is refused. Several processes may share the folder.
class Serials {
 public:
  /// The folder is created with the first serial.
  explicit Serials(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// Throws FailedPrecondition at `where` if a higher serial of the issuer was accepted before. A higher one
  /// is remembered. Throws the errors of reading and writing files.
  void accept(const std::string& issuer, std::uint64_t serial, const std::string& where) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace cubind
