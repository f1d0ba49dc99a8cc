// What a tensor is, as torch tells it to C: DLPack's exchange API, version 1, hand-declared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "cuda_api/driver_types.hpp"
#include "plan/dtype.hpp"

namespace cubind::python {

/// DLTensor. Shape and strides (in elements) belong to the tensor, and live as long.
struct TensorView {
  void* data = nullptr;
  std::int32_t device_type = 0;
  std::int32_t device_id = 0;
  std::int32_t rank = 0;
  std::uint8_t type_code = 0;
  std::uint8_t type_bits = 0;
  std::uint16_t lanes = 0;
  const std::int64_t* shape = nullptr;
  const std::int64_t* strides = nullptr;
  std::uint64_t byte_offset = 0;
};
static_assert(sizeof(TensorView) == 48 && offsetof(TensorView, shape) == 24);

/// DLPackExchangeAPI: what `torch.Tensor.__dlpack_c_exchange_api__` points to. Its functions return 0, or -1
/// with an exception of Python.
struct TensorExchange {
  static constexpr std::uint32_t kMajor = 1;
  static constexpr std::int32_t kCpu = 1, kCuda = 2;

  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  const TensorExchange* older = nullptr;
  void* allocate = nullptr;
  void* export_owned = nullptr;
  void* import_owned = nullptr;
  int (*view)(void* tensor, TensorView* out) = nullptr;  // may be missing
  int (*current_stream)(std::int32_t device_type, std::int32_t device_id, void** out) = nullptr;
};

/// Absent for a type that no kernel takes.
std::optional<DType> dtype_of(const TensorView& view);

/// The number of the GPU, -1 for the CPU, absent for any other device.
std::optional<int> device_of(const TensorView& view);

cuda::DevicePtr address_of(const TensorView& view);

std::span<const std::int64_t> shape_of(const TensorView& view);

/// Whether the elements lie in C order without gaps.
bool is_contiguous(const TensorView& view);

/// Of a tensor [B, heads, rows, D]: 0 in C order; for a view of [B, rows, heads, D] the elements from one row
/// to the next, a multiple of 8. Absent for anything else.
std::optional<std::int64_t> row_stride(const TensorView& view);

/// Whether a tensor [B, heads, rows, D] lies as a dense [B, rows, heads, D].
bool is_dense_by_rows(const TensorView& view);

}  // namespace cubind::python
