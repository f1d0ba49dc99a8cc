// Limits of single values, wherever they come from, each with an error that names the field and the limit.
#pragma once

#include <cstddef>
#include <string_view>

#include "schemas/limits.hpp"

namespace cubind {

inline constexpr int kMaxMessageBytes = 4 << 20;  // gRPC's own default
inline constexpr std::size_t kMaxNameBytes = 256;
inline constexpr std::size_t kMaxReasonBytes = 2000;
inline constexpr double kLeastTimeUs = 1e-4;  // a clock of the GPU: every launch takes time

/// Throws InvalidArgument: longer than `max` bytes, or a control or format character in it.
void check_text(std::string_view text, std::string_view field, std::size_t max = kMaxNameBytes);
/// Throws InvalidArgument for what is no number, is negative or is above `max`.
void check_number(double value, double max, std::string_view field);
/// Microseconds, from kLeastTimeUs to an hour.
void check_duration(double time_us, std::string_view field);

}  // namespace cubind
