// The time below which a measurement cannot be true: it detects a kernel that skips its work, or a wrong
// timer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schemas/cubind.pb.h"
#include "tuner/measure/measure_settings.hpp"

namespace cubind::measure {

/// How the detail of a trial begins whose time is below the floor.
inline const std::string kTimeRefused = "time refused: ";

/// The minimum of the work. Zero: unknown.
struct FloorWork {
  std::uint64_t flops = 0;
  std::uint64_t min_read_bytes = 0;  // counts only in cold mode: in warm mode the L2 may serve the reads
  bool cold_l2 = true;
};

/// The GPU while the samples were taken. Zero: unknown; the floor that needs the value is then ignored.
struct FloorRates {
  std::uint32_t cc_major = 0, cc_minor = 0;
  std::uint32_t sm_count = 0;
  std::uint32_t sm_mhz = 0;      // sampled
  std::uint32_t memory_mhz = 0;  // as NVML reports it; memory transfers twice per clock
  std::uint32_t memory_bus_bits = 0;
};

inline FloorRates floor_rates(const v1::DeviceFacts& facts, std::uint32_t sm_mhz, std::uint32_t memory_mhz) {
  return {facts.cc_major(), facts.cc_minor(), facts.sm_count(), sm_mhz, memory_mhz, facts.memory_bus_bits()};
}

/// The same as cuda_api/device_facts.hpp reads them.
template <typename Facts>
FloorRates floor_rates(const Facts& facts, std::uint32_t sm_mhz, std::uint32_t memory_mhz) {
  return {facts.cc_major, facts.cc_minor, facts.sm_count, sm_mhz, memory_mhz, facts.memory_bus_bits};
}

/// The least time that the work can take.
struct Floor {
  double flops_us = 0;  // at the highest dense rate of the architecture's instructions
  double read_us = 0;   // at the memory's peak rate
  double us = 0;        // the larger, less the margin; 0: unknown
};

Floor compute_floor(const FloorWork& work, const FloorRates& rates, const MeasureSettings& settings = {});

/// Whether a sample is impossible: below the floor by more than the timer's tick.
bool is_below(const Floor& floor, double sample_us, double tick_us);

/// "1.2 us is below the floor of 3.4 us (12.1 GFLOP take 0.9 us at 1980 MHz, 16.8 MB read take 3.8 us at 4917
/// GB/s, less 10 %)".
std::string describe(const Floor& floor, const FloorWork& work, const FloorRates& rates, double sample_us);

/// describe() for the smallest of a block's samples if it is below the floor, else empty.
std::string impossible_sample(const FloorWork& work, const FloorRates& rates,
                              const std::vector<double>& samples_us, double tick_us,
                              const MeasureSettings& settings = {});

/// Floating-point operations per clock and SM of the architecture's fastest dense instruction. An
/// architecture that is not listed gets a figure above all listed ones.
std::uint32_t peak_flops_per_clock(std::uint32_t cc_major, std::uint32_t cc_minor);

/// Bytes per second at the memory's peak; 0 if clock or bus width is unknown.
double peak_bytes_per_second(const FloorRates& rates);
/// Operations per second at peak_flops_per_clock(); 0 if the clock or the number of SMs is unknown.
double peak_flops_per_second(const FloorRates& rates);

}  // namespace cubind::measure
