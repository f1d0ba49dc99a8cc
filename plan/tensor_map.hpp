// Tensor maps (CUtensorMap): what the copies between a tensor in memory and shared memory (TMA) know of a
// buffer. Numbers have the order and the units of the driver's cuTensorMapEncodeTiled: axes are listed
// innermost first, strides are bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plan/dtype.hpp"

namespace cubind {

inline constexpr std::size_t kMaxTensorMapAxes = 5;

/// The element types of tensor maps, with the numbers of CUtensorMapDataType.
enum class TensorMapType : std::uint8_t {
  U8,
  U16,
  U32,
  I32,
  U64,
  I64,
  F16,
  F32,
  F64,
  Bf16,
  F32Ftz,
  Tf32,
  Tf32Ftz
};

std::size_t size_of(TensorMapType type);
/// "bf16", "tf32_ftz"
std::string_view to_string(TensorMapType type);
std::optional<TensorMapType> parse_tensor_map_type(std::string_view text);
std::vector<std::string> tensor_map_type_names();
/// The type for the elements of a buffer: U8 for those of one byte.
TensorMapType tensor_map_type(DType elements);

struct TensorMapTemplate {
  std::string argument;  // the map's name in the spec
  TensorMapType type = TensorMapType::U8;
  bool nan_fill = false;  // what lies outside of the tensor is read as NaN, not as 0
  // Expressions:
  std::vector<std::string> sizes = {};               // elements by axis
  std::vector<std::string> strides = {};             // bytes, of each axis but the first; empty: no gaps
  std::vector<std::string> box = {};                 // elements by axis of one copy
  std::vector<std::string> element_strides = {};     // empty: all 1
  std::vector<std::string> modes = {"0", "0", "0"};  // swizzle, interleave, L2 promotion: bytes, 0: none
  bool operator==(const TensorMapTemplate&) const = default;
};

/// The indices of these lists.
inline constexpr std::size_t kMapSizes = 0, kMapStrides = 1, kMapBox = 2, kMapElementStrides = 3,
                             kMapModes = 4;
inline constexpr std::pair<const char*, std::vector<std::string> TensorMapTemplate::*> kTensorMapLists[] = {
    {"sizes", &TensorMapTemplate::sizes}, {"strides", &TensorMapTemplate::strides},
    {"box", &TensorMapTemplate::box},     {"element_strides", &TensorMapTemplate::element_strides},
    {"modes", &TensorMapTemplate::modes},
};
inline constexpr const char* kTensorMapModes[] = {"swizzle", "interleave", "l2_promotion"};

/// "box/0": the key of an expression below the argument of the spec.
std::string tensor_map_key(std::size_t list, std::size_t index);

/// A TensorMapTemplate with its numbers. Of the arrays, `axes` elements count, of `strides` one less.
struct TensorMap {
  using Axes = std::array<std::int64_t, kMaxTensorMapAxes>;

  std::string argument = {};
  TensorMapType type = TensorMapType::U8;
  bool nan_fill = false;
  std::uint32_t axes = 0;
  Axes sizes{}, strides{}, box{}, element_strides{};
  std::int64_t swizzle = 0, interleave = 0, l2_promotion = 0;
  bool operator==(const TensorMap&) const = default;
};

/// "bf16 [4096, 1024], strides [8192], box [64, 128], swizzle 128B"
std::string to_string(const TensorMap& map);

/// What is wrong with a tensor map, and where: "box/0" below the argument of the spec, or "" for itself.
struct TensorMapFault {
  std::string key, cause;
};

/// Whether the lists have one to five axes, and as many elements as axes.
std::optional<TensorMapFault> tensor_map_fault(const TensorMapTemplate& map);

/// The buffer below a tensor map.
struct TensorMapBuffer {
  std::uint64_t bytes = 0;
  std::uint32_t align_bytes = 0;
};

/// What the driver would not encode, or what lies outside of the buffer. `capability`: 90 for 9.0.
std::optional<TensorMapFault> tensor_map_fault(const TensorMap& map, const TensorMapBuffer& buffer,
                                               std::int64_t capability);

}  // namespace cubind
