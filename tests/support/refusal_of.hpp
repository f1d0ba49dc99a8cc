// What is refused as invalid, and with which words.
#pragma once

#include <catch2/catch.hpp>

#include <optional>
#include <string>

#include "base/error.hpp"

namespace cubind::test {

/// The error that an action is refused with, as an invalid argument; absent: it is not.
template <typename Action>
std::optional<Error> refused(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::InvalidArgument);
    return error;
  }
  return std::nullopt;
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
