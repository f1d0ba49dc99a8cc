// What calls of operators ask torch for.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "cuda_api/driver_types.hpp"
#include "python/extension/python_object.hpp"
#include "python/extension/tensor_view.hpp"

namespace cubind::python {

/// The functions of torch are handed in, so that nothing here is bound to a version of it. Used with the GIL
/// held.
class TorchAccess {
 public:
  /// The fields of a mapping. Throws PythonError where one is missing.
  ///   exchange          torch.Tensor.__dlpack_c_exchange_api__; None where torch has none: no tensor is read
  ///   plain             the types whose instances are tensors and nothing more
  ///   watchers          callables: one that returns what is true has somebody look on at the operators
  ///   forward_ad        the module of forward-mode gradients; its _current_level is below 0 without any
  ///   is_grad_enabled, empty_like, float32, uint8     torch's own
  explicit TorchAccess(PyObject* fields);

  bool is_plain(PyObject* object) const;
  /// Nobody looks on: no watcher, no forward-mode gradients.
  bool is_quiet() const;
  /// Gradients are recorded, and one of the tensors needs them.
  bool needs_gradients(std::span<PyObject* const> tensors) const;

  /// Absent where torch does not say (no such interface, or a tensor without memory).
  std::optional<TensorView> view(PyObject* tensor) const;
  /// The current stream of the tensor's GPU; absent where torch does not say. Null for the CPU.
  std::optional<cuda::Stream> stream(const TensorView& view) const;

  /// New tensors beside `like`, in C order.
  Object empty_like(PyObject* like) const;
  Object empty(PyObject* like, std::span<const std::int64_t> shape, bool is_float32) const;
  Object bytes(PyObject* like, std::uint64_t count) const;

 private:
  const TensorExchange* exchange_ = nullptr;
  std::vector<Object> plain_, watchers_;
  Object forward_ad_, is_grad_enabled_, empty_like_, float32_, uint8_;
  Object current_level_, requires_grad_, new_empty_;  // names
};

}  // namespace cubind::python
