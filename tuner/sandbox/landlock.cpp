#include "tuner/sandbox/landlock.hpp"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "base/error.hpp"
#include "base/unique_fd.hpp"

namespace cubind {
namespace {

// linux/landlock.h, which may be older than the kernel that runs.
struct Ruleset {
  std::uint64_t files;
  std::uint64_t network;  // from version 4 on
  std::uint64_t scoped;   // from version 6 on
};
constexpr std::uint32_t kAskVersion = 1;
constexpr std::uint64_t kTcp = 0b11;     // bind and connect
constexpr std::uint64_t kScoped = 0b11;  // abstract Unix sockets and signals

// The rights that a version knows: the first N bits.
std::uint64_t file_rights(int version) {
  constexpr int kRights[] = {13, 14, 15, 15, 16};  // by version, from 1 on; later ones have added none
  constexpr int kNewest = static_cast<int>(std::size(kRights));
  return (std::uint64_t{1} << kRights[std::min(version, kNewest) - 1]) - 1;
}

std::size_t known_bytes(int version) {
  return version >= 6   ? sizeof(Ruleset)
         : version >= 4 ? offsetof(Ruleset, scoped)
                        : offsetof(Ruleset, network);
}

Error refused(const char* call) { return system_error("Landlock", call, errno); }

}  // namespace

int landlock_version() {
  const long version = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, kAskVersion);
  return version > 0 ? static_cast<int>(version) : 0;
}

void deny_all_files() {
  const int version = landlock_version();
  if (version == 0) {
    throw Error(ErrorCode::Unavailable, "Landlock",
                "the kernel has none, or does not allow its use (Linux 5.13 or later has it)");
  }
  const Ruleset rules{.files = file_rights(version), .network = kTcp, .scoped = kScoped};
  const UniqueFd ruleset(
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, &rules, known_bytes(version), 0)));
  if (!ruleset) {
    throw refused("landlock_create_ruleset");
  }
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    throw refused("prctl");
  }
  if (::syscall(SYS_landlock_restrict_self, ruleset.get(), 0) != 0) {
    throw refused("landlock_restrict_self");
  }
}

}  // namespace cubind
