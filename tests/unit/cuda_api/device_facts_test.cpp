#include "cuda_api/device_facts.hpp"

#include <catch2/catch.hpp>

namespace cubind::cuda {
namespace {

TEST_CASE("a UUID is printed as nvidia-smi prints it") {
  Uuid uuid{};
  for (int i = 0; i < 16; ++i) {
    uuid.bytes[i] = static_cast<char>(0xf0 + i);
  }
  CHECK(format_uuid(uuid, false) == "GPU-f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff");
  CHECK(format_uuid(uuid, true) == "MIG-f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff");
}

TEST_CASE("a MIG profile is read from the device's name") {
  CHECK(mig_profile_of("NVIDIA H100 80GB HBM3 MIG 1g.10gb") == "1g.10gb");
  CHECK(mig_profile_of("NVIDIA H200").empty());
}

TEST_CASE("the driver's version is found in the text of proc") {
  CHECK(version_in_proc_text(
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Tue Jan  6 10:00:00 UTC 2026") ==
        "580.159.04");
  CHECK(version_in_proc_text(
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  535.54.03  Release Build") ==
        "535.54.03");
  CHECK(version_in_proc_text("").empty());
  CHECK(version_in_proc_text("no version here.").empty());
}

}  // namespace
}  // namespace cubind::cuda
