#include "python/extension/tensor_view.hpp"

namespace cubind::python {

std::optional<DType> dtype_of(const TensorView& view) {
  constexpr std::uint8_t kFloat = 2, kBfloat = 4;
  if (view.lanes == 1 && view.type_code == kBfloat && view.type_bits == 16) {
    return DType::Bf16;
  }
  if (view.lanes == 1 && view.type_code == kFloat && (view.type_bits == 16 || view.type_bits == 32)) {
    return view.type_bits == 16 ? DType::F16 : DType::F32;
  }
  return std::nullopt;
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

}  // namespace cubind::python
