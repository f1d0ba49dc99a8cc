#include "tuner/measure/floor.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace cubind::measure {
namespace {

struct PeakRate {
  std::uint32_t cc;
  std::uint32_t flops_per_clock;
};

// Figures of the vendor's data sheets: dense tensor throughput at the narrowest type, over SMs and boost
// clock. Too high a figure only makes the floor lower.
constexpr std::array<PeakRate, 8> kPeakRates{{
    {75, 2048},    // Turing: int8
    {80, 4096},    // A100: int8 624 TOP/s
    {86, 2048},    // GA102: int8
    {87, 4096},    // Orin
    {89, 4096},    // Ada: fp8
    {90, 8192},    // H100, H200: fp8 1979 TFLOP/s
    {100, 32768},  // B200: fp4 9 PFLOP/s
    {120, 8192},   // RTX 50: fp4
}};
constexpr std::uint32_t kUnlistedFlopsPerClock = 65536;

std::string format(const char* pattern, double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), pattern, value);
  return text.data();
}

}  // namespace

std::uint32_t peak_flops_per_clock(std::uint32_t cc_major, std::uint32_t cc_minor) {
  for (const PeakRate& rate : kPeakRates) {
    if (rate.cc == cc_major * 10 + cc_minor) {
      return rate.flops_per_clock;
    }
  }
  return kUnlistedFlopsPerClock;
}

double peak_bytes_per_second(const FloorRates& rates) {
  return 2.0 * rates.memory_mhz * 1e6 * (rates.memory_bus_bits / 8.0);
}

double peak_flops_per_second(const FloorRates& rates) {
  return 1e6 * peak_flops_per_clock(rates.cc_major, rates.cc_minor) * rates.sm_count * rates.sm_mhz;
}

Floor compute_floor(const FloorWork& work, const FloorRates& rates, const MeasureSettings& settings) {
  Floor floor;
  const double flops_per_us = peak_flops_per_second(rates) * 1e-6;
  if (flops_per_us > 0) {
    floor.flops_us = static_cast<double>(work.flops) / flops_per_us;
  }
  const double bytes_per_us = peak_bytes_per_second(rates) * 1e-6;
  if (work.cold_l2 && bytes_per_us > 0) {
    floor.read_us = static_cast<double>(work.min_read_bytes) / bytes_per_us;
  }
  floor.us = std::max(floor.flops_us, floor.read_us) * (1 - settings.floor_margin);
  return floor;
}

bool is_below(const Floor& floor, double sample_us, double tick_us) { return sample_us + tick_us < floor.us; }

std::string describe(const Floor& floor, const FloorWork& work, const FloorRates& rates, double sample_us) {
  std::string text = format("%.3f us is below the floor of ", sample_us) + format("%.3f us (", floor.us);
  if (floor.flops_us > 0) {
    text += format("%.3f GFLOP take ", static_cast<double>(work.flops) * 1e-9) +
            format("%.3f us at ", floor.flops_us) + std::to_string(rates.sm_mhz) + " MHz, ";
  }
  if (floor.read_us > 0) {
    text += format("%.3f MB read take ", static_cast<double>(work.min_read_bytes) * 1e-6) +
            format("%.3f us at ", floor.read_us) + format("%.0f GB/s, ", peak_bytes_per_second(rates) * 1e-9);
  }
  const double larger = std::max(floor.flops_us, floor.read_us);
  return text + format("less %.0f %%)", larger > 0 ? 100 * (1 - floor.us / larger) : 0);
}

std::string impossible_sample(const FloorWork& work, const FloorRates& rates,
                              const std::vector<double>& samples_us, double tick_us,
                              const MeasureSettings& settings) {
  const auto least = std::ranges::min_element(samples_us);
  const Floor floor = compute_floor(work, rates, settings);
  return least != samples_us.end() && is_below(floor, *least, tick_us) ? describe(floor, work, rates, *least)
                                                                       : "";
}

}  // namespace cubind::measure
