// What the opaque handles of cubind.h are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/c/cubind.h"
#include "client/client.hpp"
#include "client/kernel.hpp"

// NOLINTBEGIN(readability-identifier-naming): the names of cubind.h
struct cubind_client {
  cubind::Client client;
};

// Owns the texts that the caller borrows.
struct cubind_variant {
  cubind::Answer answer;
  std::string problem, configuration, match;
};

struct cubind_kernel {
  cubind::LoadedKernel loaded;
  std::vector<std::size_t> functions;  // of each launch: its function's number in the module
};

struct cubind_binding {
  cubind::PreparedLaunch prepared;  // which keeps the module
  std::vector<cubind::Parameter> arguments;
  std::vector<cubind::ArgumentValue> values;
};
// NOLINTEND(readability-identifier-naming)

namespace cubind::c {

/// The names are borrowed from `parameter`.
cubind_parameter described(const Parameter& parameter);

}  // namespace cubind::c
