#pragma once

#include <filesystem>
#include <optional>

namespace cubind::test {

// Where a test finds its files. In a package (cubind-*/tests/<name>) everything is relative to the
// executable, so that the same executable runs on another machine; in a build tree it is the checkout and the
// build folder.

/// The folder with variants/, schemas/ and tests/golden/.
std::filesystem::path source_dir();

/// The folder with cubind, cubind-agent, cubind-worker and cubindctl.
std::filesystem::path bin_dir();

/// A cubind-worker whose replay device fails as a test wants (tests/support/faulty_device.hpp). Packages have
/// none.
std::filesystem::path faulty_worker();

/// A folder whose lib/ (or lib64/) holds NVRTC: $CUBIND_CUDA_HOME, else the one found when the build was
/// configured, else none. main() exports it as CUBIND_CUDA_HOME, so that child processes find the same.
std::optional<std::filesystem::path> cuda_home();

/// The same with NVRTC 12.x: $CUBIND_TEST_CUDA12_HOME, else the build's.
std::optional<std::filesystem::path> cuda12_home();

}  // namespace cubind::test
