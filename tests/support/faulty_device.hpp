// A replay device that fails, waits and takes memory as a file says (tests/support/replay_faults.hpp): what
// stands above a device is tested with it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tuner/worker/device_backend.hpp"

namespace cubind::test {

/// `arguments`: --replay TABLE. The faults are those of the file that CUBIND_REPLAY_FAULTS names.
std::unique_ptr<worker::DeviceBackend> make_faulty_device(const std::vector<std::string>& arguments);
std::unique_ptr<worker::DeviceBackend> make_faulty_device(const std::vector<std::string>& arguments,
                                                          const std::string& faults_file);

}  // namespace cubind::test
