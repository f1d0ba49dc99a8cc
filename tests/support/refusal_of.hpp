// What an action throws.
#pragma once

#include <catch2/catch.hpp>

#include <optional>
#include <string>

#include "base/error.hpp"

namespace cubind::test {

/// The Error; absent: nothing is thrown.
template <typename Action>
std::optional<Error> error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

/// Its code. The test fails if nothing is thrown.
template <typename Action>
ErrorCode code_of(const Action& action) {
  return error_of(action).value().code();
}

/// What it says; empty: nothing is thrown.
template <typename Action>
std::string message_of(const Action& action) {
  const auto error = error_of(action);
  return error ? error->what() : "";
}

/// The error that an action is refused with, as an invalid argument; absent: it is not.
template <typename Action>
std::optional<Error> refused(const Action& action) {
  auto error = error_of(action);
  if (error) {
    CHECK(error->code() == ErrorCode::InvalidArgument);
  }
  return error;
}

/// What it says; empty: the action is not refused.
template <typename Action>
std::string refusal_of(const Action& action) {
  const auto error = refused(action);
  return error ? error->what() : "";
}

/// Where it was; empty: the action is not refused.
template <typename Action>
std::string refused_at(const Action& action) {
  const auto error = refused(action);
  return error ? error->where() : "";
}

}  // namespace cubind::test
