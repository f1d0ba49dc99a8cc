// The GPU of the tests' tables, records and questions.
#pragma once

#include "tuner/spec/device_class.hpp"

namespace cubind::test {

/// As an H200 reports itself, but for the bus width: it says 6016 bits, and golden digests hold this figure.
inline DeviceFacts example_facts() {
  DeviceFacts facts;
  facts.name = "NVIDIA H200";
  facts.pci_device_id = 0x233510de;
  facts.cc_major = 9;
  facts.sm_count = 132;
  facts.l2_bytes = 62914560;
  facts.shared_optin_bytes = 232448;
  facts.memory_bytes = 150109880320;
  facts.memory_bus_bits = 6144;
  facts.power_limit_mw = 700000;
  facts.max_sm_mhz = 1980;
  return facts;
}

}  // namespace cubind::test
