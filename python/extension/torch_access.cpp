#include "python/extension/torch_access.hpp"

#include <algorithm>

namespace cubind::python {
namespace {

Object field(PyObject* fields, const char* name) {
  return Object::take(PyMapping_GetItemString(fields, name));
}

std::vector<Object> items(const Object& sequence) {
  std::vector<Object> all(size_of(sequence.get()));
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i] = Object::take(PySequence_GetItem(sequence.get(), static_cast<Py_ssize_t>(i)));
  }
  return all;
}

const TensorExchange* exchange_of(const Object& capsule) {
  if (PyCapsule_IsValid(capsule.get(), "dlpack_exchange_api") == 0) {
    return nullptr;
  }
  const auto* exchange =
      static_cast<const TensorExchange*>(PyCapsule_GetPointer(capsule.get(), "dlpack_exchange_api"));
  while (exchange != nullptr && exchange->major != TensorExchange::kMajor) {
    exchange = exchange->older;
  }
  const bool is_whole =
      exchange != nullptr && exchange->view != nullptr && exchange->current_stream != nullptr;
  return is_whole ? exchange : nullptr;
}

bool is_true(const Object& callable) {
  const Object answer = Object::take(PyObject_CallNoArgs(callable.get()));
  const int truth = PyObject_IsTrue(answer.get());
  if (truth < 0) {
    throw PythonError();
  }
  return truth != 0;
}

Object interned(const char* name) { return Object::take(PyUnicode_InternFromString(name)); }

Object shape_tuple(std::span<const std::int64_t> shape) {
  Object tuple = Object::take(PyTuple_New(static_cast<Py_ssize_t>(shape.size())));
  for (std::size_t i = 0; i < shape.size(); ++i) {
    PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(i),
                    Object::take(PyLong_FromLongLong(shape[i])).release());
  }
  return tuple;
}

Object dtype_argument(const Object& dtype) {
  Object named = Object::take(PyDict_New());
  if (PyDict_SetItemString(named.get(), "dtype", dtype.get()) != 0) {
    throw PythonError();
  }
  return named;
}

Object new_empty(PyObject* like, const Object& name, std::span<const std::int64_t> shape, PyObject* named) {
  const Object method = Object::take(PyObject_GetAttr(like, name.get()));
  const Object size = shape_tuple(shape);
  const Object arguments = Object::take(PyTuple_Pack(1, size.get()));
  return Object::take(PyObject_Call(method.get(), arguments.get(), named));
}

}  // namespace

TorchAccess::TorchAccess(PyObject* fields)
    : exchange_(exchange_of(field(fields, "exchange"))),
      plain_(items(field(fields, "plain"))),
      watchers_(items(field(fields, "watchers"))),
      forward_ad_(field(fields, "forward_ad")),
      is_grad_enabled_(field(fields, "is_grad_enabled")),
      empty_like_(field(fields, "empty_like")),
      float32_(dtype_argument(field(fields, "float32"))),
      uint8_(dtype_argument(field(fields, "uint8"))),
      current_level_(interned("_current_level")),
      requires_grad_(interned("requires_grad")),
      new_empty_(interned("new_empty")) {}

bool TorchAccess::is_plain(PyObject* object) const {
  const auto* type = reinterpret_cast<PyObject*>(Py_TYPE(object));
  return std::ranges::any_of(plain_, [type](const Object& plain) { return plain.get() == type; });
}

bool TorchAccess::is_quiet() const {
  const Object level = Object::take(PyObject_GetAttr(forward_ad_.get(), current_level_.get()));
  return integer_of(level.get()) < 0 && std::ranges::none_of(watchers_, is_true);
}

bool TorchAccess::needs_gradients(std::span<PyObject* const> tensors) const {
  return is_true(is_grad_enabled_) && std::ranges::any_of(tensors, [this](PyObject* tensor) {
           return Object::take(PyObject_GetAttr(tensor, requires_grad_.get())).get() == Py_True;
         });
}

std::optional<TensorView> TorchAccess::view(PyObject* tensor) const {
  TensorView view;
  if (exchange_ == nullptr) {
    return std::nullopt;
  }
  if (exchange_->view(tensor, &view) != 0) {
    PyErr_Clear();
    return std::nullopt;
  }
  return view;
}

std::optional<cuda::Stream> TorchAccess::stream(const TensorView& view) const {
  void* stream = nullptr;
  if (view.device_type == TensorExchange::kCuda &&
      exchange_->current_stream(view.device_type, view.device_id, &stream) != 0) {
    PyErr_Clear();
    return std::nullopt;
  }
  return static_cast<cuda::Stream>(stream);
}

Object TorchAccess::empty_like(PyObject* like) const {
  return Object::take(PyObject_CallFunctionObjArgs(empty_like_.get(), like, nullptr));
}

Object TorchAccess::empty(PyObject* like, std::span<const std::int64_t> shape, bool is_float32) const {
  return new_empty(like, new_empty_, shape, is_float32 ? float32_.get() : nullptr);
}

Object TorchAccess::bytes(PyObject* like, std::uint64_t count) const {
  const auto size = static_cast<std::int64_t>(count);
  return new_empty(like, new_empty_, {&size, 1}, uint8_.get());
}

}  // namespace cubind::python
