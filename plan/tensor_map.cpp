#include "plan/tensor_map.hpp"

#include <algorithm>
#include <initializer_list>
#include <span>

#include "base/text.hpp"

namespace cubind {
namespace {

struct MapTypeFacts {
  std::string_view name;
  std::size_t bytes;
  bool floating;
};

// In the order of the enumerators.
constexpr MapTypeFacts kMapTypes[] = {
    {"u8", 1, false},     {"u16", 2, false}, {"u32", 4, false},    {"i32", 4, false}, {"u64", 8, false},
    {"i64", 8, false},    {"f16", 2, true},  {"f32", 4, true},     {"f64", 8, true},  {"bf16", 2, true},
    {"f32_ftz", 4, true}, {"tf32", 4, true}, {"tf32_ftz", 4, true}};

const MapTypeFacts& facts_of(TensorMapType type) { return kMapTypes[static_cast<std::size_t>(type)]; }

// The driver's limits.
constexpr std::int64_t kFirstWithTensorMaps = 90;  // compute capability 9.0
constexpr std::int64_t kMostSize = std::int64_t{1} << 32;
constexpr std::int64_t kMostStride = (std::int64_t{1} << 40) - 16;
constexpr std::int64_t kMostBox = 256;
constexpr std::int64_t kMostElementStride = 8;
constexpr std::int64_t kChunk = 16;  // bytes that TMA copies as one

using Fault = std::optional<TensorMapFault>;

std::string bytes_text(std::int64_t bytes) { return std::to_string(bytes) + " bytes"; }

// The alignment of the buffer and of the strides.
std::int64_t step_of(const TensorMap& map) { return map.interleave == 32 ? 32 : kChunk; }

Fault mode_fault(const TensorMap& map) {
  const auto check = [](std::size_t mode, std::int64_t value, std::initializer_list<std::int64_t> known) {
    return std::ranges::find(known, value) != known.end()
               ? Fault()
               : Fault({kTensorMapModes[mode],
                        bytes_text(value) + ": it is one of " + join(known, ", ") + ", where 0 is none"});
  };
  Fault fault = check(0, map.swizzle, {0, 32, 64, 128});
  fault = fault ? fault : check(1, map.interleave, {0, 16, 32});
  fault = fault ? fault : check(2, map.l2_promotion, {0, 64, 128, 256});
  if (!fault && map.interleave != 0 && map.axes < 3) {
    return {{"interleave", "needs three axes or more, the tensor has " + std::to_string(map.axes)}};
  }
  if (!fault && map.interleave == 32 && map.swizzle != 32) {
    return {{"swizzle", bytes_text(map.swizzle) + ": an interleave of 32 bytes needs a swizzle of 32"}};
  }
  return fault;
}

Fault range_fault(std::size_t list, std::size_t axis, std::int64_t value, std::int64_t most) {
  if (value >= 1 && value <= most) {
    return std::nullopt;
  }
  return {{tensor_map_key(list, axis), std::to_string(value) + " is not from 1 to " + std::to_string(most)}};
}

Fault axis_fault(const TensorMap& map, std::size_t axis) {
  Fault fault = range_fault(kMapSizes, axis, map.sizes[axis], kMostSize);
  fault = fault ? fault : range_fault(kMapBox, axis, map.box[axis], kMostBox);
  fault =
      fault ? fault : range_fault(kMapElementStrides, axis, map.element_strides[axis], kMostElementStride);
  if (fault || axis + 1 >= map.axes) {
    return fault;
  }
  const std::int64_t stride = map.strides[axis];
  if (stride < 0 || stride > kMostStride || stride % step_of(map) != 0) {
    return {{tensor_map_key(kMapStrides, axis),
             bytes_text(stride) + " are not a multiple of " + std::to_string(step_of(map)) + " below 2^40"}};
  }
  return std::nullopt;
}

Fault row_fault(const TensorMap& map) {
  const std::int64_t row = map.box[0] * static_cast<std::int64_t>(size_of(map.type));
  const auto wrong = [&](const std::string& cause) {
    return Fault({"box/0", std::to_string(map.box[0]) + " elements of " + std::string(to_string(map.type)) +
                               " are " + bytes_text(row) + cause});
  };
  if (map.interleave == 0 && row % kChunk != 0) {
    return wrong(", not a multiple of 16");
  }
  if (map.interleave == 0 && map.swizzle != 0 && row > map.swizzle) {
    return wrong(", more than the swizzle's " + std::to_string(map.swizzle) +
                 ": give the box less of this axis, and copy more often");
  }
  return std::nullopt;
}

Fault buffer_fault(const TensorMap& map, const TensorMapBuffer& buffer) {
  if (buffer.align_bytes < step_of(map)) {
    return {{"", "its buffer is aligned to " + bytes_text(buffer.align_bytes) +
                     ": give the buffer \"align\": " + std::to_string(step_of(map))}};
  }
  std::uint64_t left = buffer.bytes;
  const auto take = [&](std::uint64_t count, std::uint64_t bytes) {
    const bool fits = bytes == 0 || count <= left / bytes;
    left -= fits ? count * bytes : 0;
    return fits;
  };
  bool fits = take(static_cast<std::uint64_t>(map.sizes[0]), size_of(map.type));
  for (std::size_t axis = 1; axis < map.axes; ++axis) {
    fits = fits && take(static_cast<std::uint64_t>(map.sizes[axis] - 1),
                        static_cast<std::uint64_t>(map.strides[axis - 1]));
  }
  return fits ? Fault()
              : Fault({"sizes", "the tensor reaches beyond the " + std::to_string(buffer.bytes) +
                                    " bytes of its buffer: " + to_string(map)});
}

}  // namespace

std::string tensor_map_key(std::size_t list, std::size_t index) {
  return list == kMapModes ? kTensorMapModes[index]
                           : std::string(kTensorMapLists[list].first) + "/" + std::to_string(index);
}

std::size_t size_of(TensorMapType type) { return facts_of(type).bytes; }

std::string_view to_string(TensorMapType type) { return facts_of(type).name; }

std::optional<TensorMapType> parse_tensor_map_type(std::string_view text) {
  const auto* const found = std::ranges::find(kMapTypes, text, &MapTypeFacts::name);
  return found == std::end(kMapTypes)
             ? std::nullopt
             : std::optional(static_cast<TensorMapType>(found - std::begin(kMapTypes)));
}

std::vector<std::string> tensor_map_type_names() {
  std::vector<std::string> names;
  std::ranges::transform(kMapTypes, std::back_inserter(names),
                         [](const MapTypeFacts& type) { return std::string(type.name); });
  return names;
}

TensorMapType tensor_map_type(DType elements) {
  if (const auto same = parse_tensor_map_type(to_string(elements))) {
    return *same;
  }
  return size_of(elements) == 1 ? TensorMapType::U8 : TensorMapType::U16;
}

std::string to_string(const TensorMap& map) {
  const auto list = [](const TensorMap::Axes& axes, std::size_t count) {
    return "[" + join(std::span(axes).first(count), ", ") + "]";
  };
  std::string text = std::string(to_string(map.type)) + " " + list(map.sizes, map.axes);
  if (map.axes > 1) {
    text += ", strides " + list(map.strides, map.axes - 1);
  }
  text += ", box " + list(map.box, map.axes);
  if (std::ranges::any_of(std::span(map.element_strides).first(map.axes),
                          [](auto one) { return one != 1; })) {
    text += ", element strides " + list(map.element_strides, map.axes);
  }
  const std::pair<const char*, std::int64_t> modes[] = {
      {"swizzle", map.swizzle}, {"interleave", map.interleave}, {"L2 promotion", map.l2_promotion}};
  for (const auto& [name, bytes] : modes) {
    text += bytes == 0 ? "" : std::string(", ") + name + " " + std::to_string(bytes) + "B";
  }
  return text + (map.nan_fill ? ", fill nan" : "");
}

std::optional<TensorMapFault> tensor_map_fault(const TensorMapTemplate& map) {
  const std::size_t axes = map.sizes.size();
  if (axes < 1 || axes > kMaxTensorMapAxes) {
    return {{"sizes", std::to_string(axes) + " axes, a tensor map has one to five"}};
  }
  const auto check = [](const char* key, std::size_t count, std::size_t wanted, bool may_be_absent) {
    return count == wanted || (may_be_absent && count == 0)
               ? Fault()
               : Fault(
                     {key, "has " + std::to_string(count) + ", the sizes ask for " + std::to_string(wanted)});
  };
  Fault fault = check("strides", map.strides.size(), axes - 1, true);
  fault = fault ? fault : check("box", map.box.size(), axes, false);
  fault = fault ? fault : check("element_strides", map.element_strides.size(), axes, true);
  return fault ? fault : check("modes", map.modes.size(), std::size(kTensorMapModes), false);
}

std::optional<TensorMapFault> tensor_map_fault(const TensorMap& map, const TensorMapBuffer& buffer,
                                               std::int64_t capability) {
  if (capability < kFirstWithTensorMaps) {
    return {{"", "GPUs before compute capability 9.0 have no tensor maps"}};
  }
  Fault fault = mode_fault(map);
  for (std::size_t axis = 0; axis < map.axes && !fault; ++axis) {
    fault = axis_fault(map, axis);
  }
  fault = fault ? fault : row_fault(map);
  if (!fault && map.nan_fill && !facts_of(map.type).floating) {
    return {{"fill", std::string(to_string(map.type)) + " has no NaN: \"zeros\""}};
  }
  return fault ? fault : buffer_fault(map, buffer);
}

}  // namespace cubind
