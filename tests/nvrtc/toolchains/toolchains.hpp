#pragma once

#include <string>
#include <vector>

#include "schemas/worker.pb.h"
#include "tuner/includes/toolkit_headers.hpp"
#include "tuner/toolchain/toolchain.hpp"

namespace cubind::test {

/// The real NVRTC installations of this machine: the newest, then NVRTC 12.x where there is one. Fails the
/// test where there is none at all.
const std::vector<Toolchain>& toolchains();

/// The one of that major version, null where it is not here.
const Toolchain* toolchain(unsigned major);

/// Of one of toolchains(), read once in a test run.
ToolkitHeaders& headers_of(const Toolchain& toolchain);

/// A request for sm_80 with these entries.
v1::CompileRequest compile_request(std::string source, std::vector<std::string> entries);

/// The same with the closure of its includes in a toolkit's headers.
v1::CompileRequest compile_request_with_headers(std::string source, std::vector<std::string> entries,
                                                const Toolchain& toolchain);

}  // namespace cubind::test
