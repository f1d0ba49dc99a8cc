// The facts of a GPU as a message. One conversion serves both holders: as they were read (cuda_api), or as
// they are kept (tuner/spec), in structs whose members have the message's names.
#pragma once

#include "schemas/cubind.pb.h"

namespace cubind {

template <typename Facts>
void facts_to_wire(const Facts& from, v1::DeviceFacts& to) {
  to.set_name(from.name);
  to.set_pci_device_id(from.pci_device_id);
  to.set_cc_major(from.cc_major);
  to.set_cc_minor(from.cc_minor);
  to.set_sm_count(from.sm_count);
  to.set_l2_bytes(from.l2_bytes);
  to.set_shared_optin_bytes(from.shared_optin_bytes);
  to.set_memory_bytes(from.memory_bytes);
  to.set_memory_bus_bits(from.memory_bus_bits);
  to.set_mig_profile(from.mig_profile);
  to.set_power_limit_mw(from.power_limit_mw);
  to.set_max_sm_mhz(from.max_sm_mhz);
}

}  // namespace cubind
