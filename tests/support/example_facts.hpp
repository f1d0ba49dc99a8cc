// The GPU of the tests' tables, records and questions.
#pragma once

#include "tuner/spec/device_class.hpp"

namespace cubind::test {

/// As an H200 reports itself, but for the bus width: it says 6016 bits, and golden digests hold this figure.
inline DeviceFacts example_facts() {
  DeviceFacts facts;
  facts.set_name("NVIDIA H200");
  facts.set_pci_device_id(0x233510de);
  facts.set_cc_major(9);
  facts.set_sm_count(132);
  facts.set_l2_bytes(62914560);
  facts.set_shared_optin_bytes(232448);
  facts.set_memory_bytes(150109880320);
  facts.set_memory_bus_bits(6144);
  facts.set_power_limit_mw(700000);
  facts.set_max_sm_mhz(1980);
  return facts;
}

}  // namespace cubind::test
