#include "server/definitions_folder.hpp"

#include "base/error.hpp"
#include "server/store/location.hpp"

namespace cubind {

DefinitionsFolder definitions_folder(const Config& config, const std::string& address) {
  constexpr int kMostDaemons = 64;
  if (config.store_url.empty()) {
    return {config.database.string() + ".kernels", {}};
  }
  store::make_folder(config.database.parent_path(), "set XDG_DATA_HOME to a folder that it can write to");
  for (int number = 1;; ++number) {
    const std::string path = config.database.string() + (number > 1 ? "-" + std::to_string(number) : "");
    try {
      UniqueFd lock = store::lock_file(path, address);
      return {path + ".kernels", std::move(lock)};
    } catch (const Error& error) {
      if (error.code() != ErrorCode::FailedPrecondition || number == kMostDaemons) {
        throw;
      }
    }
  }
}

}  // namespace cubind
