#include "tuner/agent/compile/private_folder.hpp"

#include <stdlib.h>

#include <cerrno>
#include <system_error>

#include "base/error.hpp"

namespace cubind {

PrivateFolder::PrivateFolder(const std::string& prefix) {
  std::string name = (std::filesystem::temp_directory_path() / (prefix + "XXXXXX")).string();
  if (::mkdtemp(name.data()) == nullptr) {
    throw system_error(name, "mkdtemp", errno);
  }
  path_ = name;
}

PrivateFolder::~PrivateFolder() {
  std::error_code failed;
  std::filesystem::remove_all(path_, failed);
}

}  // namespace cubind
