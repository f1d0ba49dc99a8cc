// What calls of operators ask torch for.
#pragma once

#include <array>
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
  ///   exchange          torch.Tensor.__dlpack_c_exchange_api__; None where torch has none
  ///   capsule           used without it, and slower: a callable that gives a DLPack capsule of a tensor
  ///   stream_of         the same: a callable that gives the current stream of a GPU by its number
  ///   plain             the types whose instances are tensors and nothing more
  ///   watchers          callables: one that returns a true value watches the operators
  ///   forward_ad        the module of forward-mode gradients; its _current_level is below 0 without any
  ///   empty_strided     callables of sizes, strides and a dtype: for the CPU, for the current GPU. None
  ///                     where torch has none: then new_empty() makes tensors, which takes longer
  ///   current_device, device_count     the number of the current GPU; of how many
  ///   dtypes            of all element types, by their names: bf16, ...
  ///   is_grad_enabled   torch's own
  explicit TorchAccess(PyObject* fields);

  /// Whether tensors are read without Python.
  bool is_fast() const { return exchange_ != nullptr; }
  bool is_plain(PyObject* object) const;
  /// Nothing watches: no watcher, no forward-mode gradients.
  bool is_quiet() const;
  bool records_gradients() const;
  /// Gradients are recorded, and one of the tensors needs them.
  bool needs_gradients(std::span<PyObject* const> tensors) const;

  /// Absent for what is no tensor with memory. The view lives as long as the tensor and `keep`.
  std::optional<TensorView> view(PyObject* tensor, Object& keep) const;
  /// The current stream of the tensor's GPU; absent where torch does not say. Null for the CPU.
  std::optional<cuda::Stream> stream(const TensorView& view) const;

  /// The dtypes of torch.
  const Object& dtype(DType type) const { return dtypes_[static_cast<std::size_t>(type)]; }

  /// What tensors of one shape and dtype are allocated by. Cheap to copy. by_rows: a [B, heads, rows, D] that
  /// lies as a dense [B, rows, heads, D]; else in C order.
  struct Form {
    std::vector<std::int64_t> shape;
    bool by_rows = false;
    Object dtype, size, arguments;
  };
  struct Memory {
    Object tensor;
    cuda::DevicePtr address;
  };

  Form form(std::vector<std::int64_t> shape, Object dtype, bool by_rows = false) const;

  /// A new tensor on the device of `like`; `beside` is the view of that. Absent where view() is, and for a
  /// form by rows where empty_strided cannot make it.
  std::optional<Memory> empty(PyObject* like, const TensorView& beside, const Form& form) const;
  /// Sets all elements to zero, in the order of the current stream.
  void clear(const Object& tensor) const;

 private:
  Object quick_empty(const TensorView& beside, const Object& arguments) const;
  Object new_empty(PyObject* like, const Object& size, const Object& dtype) const;
  bool is_current(const TensorView& view) const;

  const TensorExchange* exchange_ = nullptr;
  std::vector<Object> plain_, watchers_;
  std::array<Object, 2> empty_strided_;  // for the CPU, for a GPU
  std::array<Object, 1 + static_cast<std::size_t>(DType::U8)> dtypes_;
  Object capsule_, stream_of_, forward_ad_, is_grad_enabled_, current_device_, device_count_;
  mutable long long devices_ = 0;                                    // 0: not asked yet
  Object current_level_, requires_grad_, new_empty_, dtype_, zero_;  // names
};

}  // namespace cubind::python
