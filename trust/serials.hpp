#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace cubind {

/// 1 to 64 letters, digits, dots, dashes and underscores, the first a letter or digit.
bool is_issuer(std::string_view text);

/// Stores the highest accepted serial of each issuer in a folder, to refuse older bundles, which their issuer
/// has replaced. Several processes may share the folder.
class Serials {
 public:
  /// The folder is created with the first serial.
  explicit Serials(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// Throws FailedPrecondition at `where` if a higher serial of the issuer was accepted before. Stores a
  /// higher one. Throws the errors of reading and writing files.
  void accept(const std::string& issuer, std::uint64_t serial, const std::string& where) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace cubind
