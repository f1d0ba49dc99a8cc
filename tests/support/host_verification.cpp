#include "tests/support/host_verification.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "plan/narrow_float.hpp"

namespace cubind::verify {
namespace {

template <typename T>
T load(std::span<const std::byte> data, std::uint64_t index) {
  T value;
  std::memcpy(&value, data.data() + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void store(std::span<std::byte> data, std::uint64_t index, T value) {
  std::memcpy(data.data() + index * sizeof(T), &value, sizeof(T));
}

template <typename T>
T saturated(double value) {
  if (std::isnan(value)) {
    return 0;
  }
  if (value <= static_cast<double>(std::numeric_limits<T>::min())) {
    return std::numeric_limits<T>::min();
  }
  if (value >= static_cast<double>(std::numeric_limits<T>::max())) {
    return std::numeric_limits<T>::max();
  }
  return static_cast<T>(value);
}

std::int64_t element_as_integer(DType type, std::span<const std::byte> data, std::uint64_t index) {
  switch (type) {
    case DType::I64:
      return load<std::int64_t>(data, index);
    case DType::I32:
      return load<std::int32_t>(data, index);
    case DType::I8:
      return load<std::int8_t>(data, index);
    case DType::U8:
      return load<std::uint8_t>(data, index);
    default:
      throw std::invalid_argument("not an integer type");
  }
}

double integer_excess(std::int64_t out, std::int64_t ref, Bounds bounds) {
  const auto a = static_cast<std::uint64_t>(out);
  const auto b = static_cast<std::uint64_t>(ref);
  const double allowed = bounds.atol + bounds.rtol * std::fabs(static_cast<double>(ref));
  return excess(static_cast<double>(out > ref ? a - b : b - a), 0, {0, allowed});
}

// This is the arithmetic of tuner/worker/device_kernels.cu; a test compares them byte by byte.
std::uint32_t zone_word(Zone zone, std::uint32_t word) {
  std::uint32_t hash = word * 0x9e3779b1U + static_cast<std::uint32_t>(zone.side) * 0x85ebca6bU;
  hash ^= hash >> 15;
  hash *= 0x2c1b3c6dU;
  hash ^= hash >> 12;
  // 5 has no factor in common with 126 or 14: two buffers differ in every word. A double is NaN by its top
  // word, which therefore starts at 0x7ff1; for all narrower types 0x7f81 is enough.
  const bool top_of_double = word % 4 == 3;
  const std::uint32_t choices = top_of_double ? 14U : 126U;
  return (top_of_double ? 0x7ff1U : 0x7f81U) + (hash % choices + zone.buffer * 5U) % choices;
}

std::byte red_zone_byte(Zone zone, std::uint64_t offset) {
  const std::uint32_t word = zone_word(zone, static_cast<std::uint32_t>(offset / 2));
  return static_cast<std::byte>(offset % 2 == 0 ? word & 0xffU : word >> 8);
}

}  // namespace

double element_as_double(DType type, std::span<const std::byte> data, std::uint64_t index) {
  return is_floating(type) ? floating_element(type, data, index)
                           : static_cast<double>(element_as_integer(type, data, index));
}

void store_element(DType type, std::span<std::byte> data, std::uint64_t index, double value) {
  switch (type) {
    case DType::F64:
      store(data, index, value);
      break;
    case DType::F32:
      store(data, index, static_cast<float>(value));
      break;
    case DType::F16:
    case DType::Bf16:
      store(data, index, encode_narrow(type, value));
      break;
    case DType::E4m3:
    case DType::E5m2:
      store(data, index, static_cast<std::uint8_t>(encode_narrow(type, value)));
      break;
    case DType::I64:
      store(data, index, saturated<std::int64_t>(value));
      break;
    case DType::I32:
      store(data, index, saturated<std::int32_t>(value));
      break;
    case DType::I8:
      store(data, index, saturated<std::int8_t>(value));
      break;
    case DType::U8:
      store(data, index, saturated<std::uint8_t>(value));
      break;
    default:
      throw std::invalid_argument("not an element type");
  }
}

Comparison compare(DType out_type, std::span<const std::byte> out, DType ref_type,
                   std::span<const std::byte> ref, Bounds bounds) {
  Comparison result;
  result.elements = out.size() / size_of(out_type);
  if (result.elements != ref.size() / size_of(ref_type)) {
    throw std::invalid_argument("output and reference differ in their number of elements");
  }
  const bool integers = !is_floating(out_type) && !is_floating(ref_type);
  for (std::uint64_t i = 0; i < result.elements; ++i) {
    const double value =
        integers ? integer_excess(element_as_integer(out_type, out, i), element_as_integer(ref_type, ref, i),
                                  bounds)
                 : excess(element_as_double(out_type, out, i), element_as_double(ref_type, ref, i), bounds);
    if (value > 1) {
      ++result.mismatches;
    }
    if (value > result.worst_excess) {
      result.worst_excess = value;
      result.worst_index = i;
    }
  }
  result.same_bits = out_type == ref_type && std::memcmp(out.data(), ref.data(), out.size()) == 0;
  return result;
}

void paint_red_zone(std::span<std::byte> bytes, Zone zone) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = red_zone_byte(zone, i);
  }
}

std::optional<ZoneDamage> check_red_zone(std::span<const std::byte> bytes, Zone zone) {
  std::optional<ZoneDamage> damage;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == red_zone_byte(zone, i)) {
      continue;
    }
    if (!damage) {
      damage = ZoneDamage{i, 0};
    }
    ++damage->bytes;
  }
  return damage;
}

}  // namespace cubind::verify
