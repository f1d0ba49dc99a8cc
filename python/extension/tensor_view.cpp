#include "python/extension/tensor_view.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace cubind::python {

std::optional<DType> dtype_of(const TensorView& view) {
  struct Known {
    std::uint8_t code, bits;
    DType type;
  };
  constexpr std::uint8_t kInt = 0, kUint = 1, kFloat = 2, kBfloat = 4, kE4m3fn = 10, kE5m2 = 12;
  constexpr std::array<Known, 10> kTypes{{{kBfloat, 16, DType::Bf16},
                                          {kFloat, 16, DType::F16},
                                          {kFloat, 32, DType::F32},
                                          {kFloat, 64, DType::F64},
                                          {kInt, 64, DType::I64},
                                          {kInt, 32, DType::I32},
                                          {kInt, 8, DType::I8},
                                          {kUint, 8, DType::U8},
                                          {kE4m3fn, 8, DType::E4m3},
                                          {kE5m2, 8, DType::E5m2}}};
  const auto* const found = std::ranges::find_if(kTypes, [&](const Known& one) {
    return view.lanes == 1 && one.code == view.type_code && one.bits == view.type_bits;
  });
  return found == kTypes.end() ? std::nullopt : std::optional(found->type);
}

std::optional<int> device_of(const TensorView& view) {
  if (view.device_type == TensorExchange::kCuda) {
    return view.device_id;
  }
  return view.device_type == TensorExchange::kCpu ? std::optional(-1) : std::nullopt;
}

cuda::DevicePtr address_of(const TensorView& view) {
  return reinterpret_cast<cuda::DevicePtr>(view.data) + view.byte_offset;
}

std::span<const std::int64_t> shape_of(const TensorView& view) {
  return {view.shape, static_cast<std::size_t>(view.rank)};
}

bool is_contiguous(const TensorView& view) {
  std::int64_t expected = 1;
  for (std::int32_t axis = view.rank - 1; axis >= 0; --axis) {
    if (view.shape[axis] != 1 && view.strides[axis] != expected) {
      return false;
    }
    expected *= view.shape[axis];
  }
  return true;
}

std::optional<std::int64_t> row_stride(const TensorView& view) {
  if (is_contiguous(view)) {
    return 0;
  }
  if (view.rank != 4) {
    return std::nullopt;
  }
  const std::int64_t batches = view.shape[0], heads = view.shape[1], rows = view.shape[2],
                     size = view.shape[3];
  const std::int64_t stride = view.strides[rows > 1 ? 2 : 0];
  const bool fits = view.strides[3] == 1 && (heads == 1 || view.strides[1] == size) &&
                    stride >= heads * size && stride % 8 == 0 &&
                    stride <= std::numeric_limits<std::int32_t>::max() &&
                    (batches == 1 || view.strides[0] == rows * stride);
  return fits ? std::optional(stride) : std::nullopt;
}

bool is_dense_by_rows(const TensorView& view) {
  return view.rank == 4 && (is_contiguous(view) ? view.shape[1] == 1 || view.shape[2] == 1
                                                : row_stride(view) == view.shape[1] * view.shape[3]);
}

}  // namespace cubind::python
