// Whether a store that no daemon has open is sound.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace cubind {

struct StoreCheck {
  std::vector<std::string> damage;  // what is lost, each with its table and row
  std::vector<std::string> notes;   // what is missing and made again by itself
  std::uint64_t records = 0, artifacts = 0, cubins = 0, trials = 0, jobs = 0;
};

/// Reads everything and changes nothing: SQLite's own checks, the sum of each row, the digest of each cubin,
/// and what rows refer to. Throws NotFound, and FailedPrecondition where a daemon has the store, another
/// application or another version of cubind has written it, or it has several names.
StoreCheck check_store(const std::filesystem::path& path);

}  // namespace cubind
