// A timer's tick: the smallest step between two of its readings.
#pragma once

#include <optional>
#include <span>

namespace cubind::measure {

/// Finds the tick from durations that spread over many ticks (work of slightly growing length). Absent if
/// fewer than four distinct readings show no step. Readings within 1.5 ns count as one, because timers scale
/// and round their ticks.
std::optional<double> estimate_tick_us(std::span<const double> durations_us);

}  // namespace cubind::measure
