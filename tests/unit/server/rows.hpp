// Rows to fill a store with.
#pragma once

#include "server/store/store.hpp"

namespace cubind::test {

DeviceFacts h200();
DeviceClass h200_class();
ToolchainIdentity toolchain(const std::string& name = "nvrtc 13.0");
Problem problem_of(std::int64_t n);
RecordQuestion question_of(std::int64_t n);
Key key_of(const std::string& text);
ArtifactRow artifact_row(const std::string& name, const std::string& cubin);
Blob blob_of(const std::string& cubin);
TrialRow trial_row(const std::string& name, std::int64_t n = 4096);
BlockRow block_row(const TrialRow& trial, unsigned index);
RecordRow record_row(std::int64_t n, double median_us = 20.0);

}  // namespace cubind::test
