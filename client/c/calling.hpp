// What every function of cubind.h does around its work.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "client/c/cubind.h"

namespace cubind::c {

/// The exception in flight as a code, whose message cubind_last_error() gives on this thread.
cubind_code fail() noexcept;

/// Runs the work. No exception leaves it.
template <typename Work>
cubind_code guarded(Work&& work) noexcept {
  try {
    std::forward<Work>(work)();
    return CUBIND_OK;
  } catch (...) {
    return fail();
  }
}

/// What the work returns, or NULL or 0 if it fails. No exception leaves it.
template <typename Work>
auto gotten(Work&& work) noexcept -> decltype(work()) {
  try {
    return std::forward<Work>(work)();
  } catch (...) {
    fail();
    return {};
  }
}

/// Throws Error(InvalidArgument) at the name of an argument that is null.
template <typename T>
T& given(T* argument, const char* name) {
  if (argument == nullptr) {
    throw Error(ErrorCode::InvalidArgument, name, "is NULL");
  }
  return *argument;
}

/// Throws Error(InvalidArgument) for a number that is none of `count`.
void check_index(std::size_t index, std::size_t count, const char* name);

/// Writes the part of a struct that its caller knows.
template <typename T>
void write_known(T* to, T from, const char* name) {
  const std::size_t known = given(to, name).size;
  if (known < sizeof from.size) {
    throw Error(ErrorCode::InvalidArgument, std::string(name) + ".size",
                std::to_string(known) + ", expected sizeof(*" + name + ")");
  }
  from.size = known;
  std::memcpy(to, &from, std::min(known, sizeof from));
}

/// Text that may be null, which is empty then.
inline std::string text(const char* argument) { return argument == nullptr ? "" : argument; }

}  // namespace cubind::c
