#include "server/convert/lent_gpu.hpp"

#include "base/error.hpp"
#include "server/convert/limits.hpp"

namespace cubind {

LentGpu lent_gpu_from_wire(const v1::LentGpu& wire) {
  check_name(wire.uuid(), "lent.uuid");
  check_name(wire.host(), "lent.host");
  if (wire.pid() == 0) {
    throw Error(ErrorCode::InvalidArgument, "lent.pid", "is missing: it is the id of the caller's process");
  }
  return {wire.uuid(), wire.pid(), wire.host(), wire.memory_bytes()};
}

void to_wire(const std::vector<LentGpu>& lent, v1::Lends& wire) {
  for (const LentGpu& one : lent) {
    v1::LentGpu& to = *wire.add_gpus();
    to.set_uuid(one.uuid);
    to.set_pid(one.process);
    to.set_host(one.host);
    to.set_memory_bytes(one.memory_bytes);
  }
}

}  // namespace cubind
