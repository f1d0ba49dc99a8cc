#pragma once

#include <cstdint>

namespace cubind {

/// The wish of a question that no measurement answers.
enum class OnMiss : std::uint8_t {
  Serve,  // never wait for a measurement: the best answer there is
  Wait,   // wait for the tuning job, within the deadline
  Fail,   // Error(NotFound)
};

}  // namespace cubind
