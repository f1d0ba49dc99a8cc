// What is refused as invalid, and with which words.
#pragma once

#include <catch2/catch.hpp>

#include <string>

#include "base/error.hpp"

namespace cubind::test {

/// What an action is refused with, as an invalid argument; empty: it is not.
template <typename Action>
std::string refusal_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::InvalidArgument);
    return error.what();
  }
  return "";
}

}  // namespace cubind::test
