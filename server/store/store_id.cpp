#include "server/store/store_id.hpp"

#include "base/digest.hpp"
#include "base/file.hpp"

namespace cubind::store {

std::string new_store_id() {
  const std::string bytes = read_file("/proc/sys/kernel/random/uuid");
  return std::string(Digest::of(bytes).view().substr(0, 16));
}

}  // namespace cubind::store
