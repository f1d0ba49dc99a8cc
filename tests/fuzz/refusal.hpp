// What every fuzz target asks of a refusal.
#pragma once

#include <cstdlib>

#include "base/error.hpp"

namespace cubind::fuzz {

/// Bad input is refused by an Error that says what was wrong and where; anything else that is thrown ends the
/// run.
template <typename Function>
void refuse_or(Function&& reads) {
  try {
    reads();
  } catch (const Error& error) {
    if (error.cause().empty() || error.where().empty()) {
      std::abort();
    }
  }
}

inline void require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

}  // namespace cubind::fuzz
