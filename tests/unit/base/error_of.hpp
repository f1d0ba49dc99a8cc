#pragma once

#include <optional>

#include "base/error.hpp"

namespace cubind {

/// The Error that the action throws; nothing where it throws none.
template <typename Action>
std::optional<Error> error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

}  // namespace cubind
