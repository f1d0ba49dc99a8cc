#include "tuner/worker/own_processes.hpp"

#include <filesystem>
#include <fstream>
#include <limits>
#include <system_error>

namespace cubind::worker {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(std::uint32_t process) { return "/proc/" + std::to_string(process); }

// The real and the effective one. (The folder's owner is root where a process has changed its user.)
bool is_of(uid_t user, std::uint32_t process) {
  std::ifstream status(folder_of(process) / "status");
  for (std::string word; status >> word;) {
    if (word == "Uid:") {
      uid_t real = 0;
      uid_t effective = 0;
      return status >> real >> effective && real == user && effective == user;
    }
    status.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return false;
}

}  // namespace

bool OwnProcesses::contain(std::uint32_t process) const {
  if (!is_of(user, process)) {
    return false;
  }
  std::error_code error;
  fs::directory_iterator file(folder_of(process) / "fd", error);
  for (; !error && file != fs::directory_iterator(); file.increment(error)) {
    std::error_code closed_meanwhile;
    if (fs::read_symlink(file->path(), closed_meanwhile).string().starts_with(device_files)) {
      return true;
    }
  }
  return false;
}

bool may_live(std::uint32_t process) {
  std::error_code error;
  return process == 0 || fs::exists(folder_of(process), error);
}

}  // namespace cubind::worker
