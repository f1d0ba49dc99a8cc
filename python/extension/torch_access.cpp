#include "python/extension/torch_access.hpp"

#include <algorithm>

#include "python/extension/argument_value.hpp"

namespace cubind::python {
namespace {

Object field(PyObject* fields, const char* name) {
  return Object::take(PyMapping_GetItemString(fields, name));
}

std::vector<Object> items(const Object& sequence) { return each_of(sequence.get(), Object::share); }

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

// Of C order, or of a [B, heads, rows, D] that lies as [B, rows, heads, D].
Object strides_of(std::span<const std::int64_t> shape, bool by_rows) {
  if (by_rows) {
    const std::int64_t size = shape[3], row = shape[1] * size;
    return tuple_of(std::array{shape[2] * row, size, row, std::int64_t{1}});
  }
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i > 1; --i) {
    strides[i - 2] = strides[i - 1] * std::max<std::int64_t>(shape[i - 1], 1);
  }
  return tuple_of(strides);
}

template <std::size_t count>
std::array<Object, count> array_of(const Object& sequence) {
  std::vector<Object> all = items(sequence);
  if (all.size() != count) {
    raise(PyExc_ValueError, "expected " + std::to_string(count) + " items");
  }
  std::array<Object, count> array;
  std::ranges::move(all, array.begin());
  return array;
}

}  // namespace

TorchAccess::TorchAccess(PyObject* fields)
    : exchange_(exchange_of(field(fields, "exchange"))),
      plain_(items(field(fields, "plain"))),
      watchers_(items(field(fields, "watchers"))),
      capsule_(field(fields, "capsule")),
      stream_of_(field(fields, "stream_of")),
      forward_ad_(field(fields, "forward_ad")),
      is_grad_enabled_(field(fields, "is_grad_enabled")),
      current_device_(field(fields, "current_device")),
      device_count_(field(fields, "device_count")),
      current_level_(interned("_current_level")),
      requires_grad_(interned("requires_grad")),
      new_empty_(interned("new_empty")),
      dtype_(interned("dtype")),
      zero_(interned("zero_")) {
  const Object quick = field(fields, "empty_strided"), dtypes = field(fields, "dtypes");
  if (quick.get() != Py_None) {
    empty_strided_ = array_of<2>(quick);
  }
  for (const std::string& name : dtype_names()) {
    dtypes_[static_cast<std::size_t>(*parse_dtype(name))] = field(dtypes.get(), name.c_str());
  }
}

bool TorchAccess::is_plain(PyObject* object) const {
  const auto* type = reinterpret_cast<PyObject*>(Py_TYPE(object));
  return std::ranges::any_of(plain_, [type](const Object& plain) { return plain.get() == type; });
}

bool TorchAccess::is_quiet() const {
  const Object level = Object::take(PyObject_GetAttr(forward_ad_.get(), current_level_.get()));
  return integer_of(level.get()) < 0 && std::ranges::none_of(watchers_, is_true);
}

bool TorchAccess::records_gradients() const { return is_true(is_grad_enabled_); }

bool TorchAccess::needs_gradients(std::span<PyObject* const> tensors) const {
  return records_gradients() && std::ranges::any_of(tensors, [this](PyObject* tensor) {
           return Object::take(PyObject_GetAttr(tensor, requires_grad_.get())).get() == Py_True;
         });
}

// A capsule holds a DLManagedTensor, which begins with its DLTensor.
std::optional<TensorView> TorchAccess::view(PyObject* tensor, Object& keep) const {
  TensorView view;
  if (exchange_ != nullptr && exchange_->view(tensor, &view) == 0) {
    return view;
  }
  PyObject* capsule =
      exchange_ == nullptr ? PyObject_CallFunctionObjArgs(capsule_.get(), tensor, nullptr) : nullptr;
  const auto* found = capsule == nullptr
                          ? nullptr
                          : static_cast<const TensorView*>(PyCapsule_GetPointer(capsule, "dltensor"));
  if (capsule != nullptr) {
    keep = Object::take(capsule);
  }
  PyErr_Clear();
  return found == nullptr ? std::nullopt : std::optional(*found);
}

std::optional<cuda::Stream> TorchAccess::stream(const TensorView& view) const {
  void* stream = nullptr;
  if (view.device_type != TensorExchange::kCuda) {
    return static_cast<cuda::Stream>(stream);
  }
  if (exchange_ == nullptr) {
    const Object device = Object::take(PyLong_FromLong(view.device_id));
    return stream_at(
        Object::take(PyObject_CallFunctionObjArgs(stream_of_.get(), device.get(), nullptr)).get());
  }
  if (exchange_->current_stream(view.device_type, view.device_id, &stream) != 0) {
    PyErr_Clear();
    return std::nullopt;
  }
  return static_cast<cuda::Stream>(stream);
}

TorchAccess::Form TorchAccess::form(std::vector<std::int64_t> shape, Object dtype, bool by_rows) const {
  Object size = tuple_of(shape);
  const Object strides = strides_of(shape, by_rows);
  Object arguments = Object::take(PyTuple_Pack(3, size.get(), strides.get(), dtype.get()));
  return {std::move(shape), by_rows, std::move(dtype), std::move(size), std::move(arguments)};
}

// `form` may change meanwhile: the objects of it are shared first.
std::optional<TorchAccess::Memory> TorchAccess::empty(PyObject* like, const TensorView& beside,
                                                      const Form& form) const {
  const Object size = form.size, dtype = form.dtype;
  Object tensor = quick_empty(beside, Object(form.arguments));
  if (!tensor && form.by_rows) {
    return std::nullopt;
  }
  if (!tensor) {
    tensor = new_empty(like, size, dtype);
  }
  Object keep;
  const std::optional<TensorView> view = this->view(tensor.get(), keep);
  return view ? std::optional(Memory{std::move(tensor), address_of(*view)}) : std::nullopt;
}

void TorchAccess::clear(const Object& tensor) const {
  Object::take(PyObject_CallMethodObjArgs(tensor.get(), zero_.get(), nullptr));
}

// Null where the tensor would lie elsewhere: the functions take no device.
Object TorchAccess::quick_empty(const TensorView& beside, const Object& arguments) const {
  const bool is_on_gpu = beside.device_type == TensorExchange::kCuda;
  const Object& function = empty_strided_[is_on_gpu ? 1 : 0];
  if (!function || (is_on_gpu && !is_current(beside))) {
    return {};
  }
  return Object::take(PyObject_Call(function.get(), arguments.get(), nullptr));
}

bool TorchAccess::is_current(const TensorView& view) const {
  if (devices_ == 0) {
    devices_ = integer_of(Object::take(PyObject_CallNoArgs(device_count_.get())).get());
  }
  return devices_ == 1 ||
         integer_of(Object::take(PyObject_CallNoArgs(current_device_.get())).get()) == view.device_id;
}

Object TorchAccess::new_empty(PyObject* like, const Object& size, const Object& dtype) const {
  const Object method = Object::take(PyObject_GetAttr(like, new_empty_.get()));
  const Object arguments = Object::take(PyTuple_Pack(1, size.get())), named = Object::take(PyDict_New());
  if (PyDict_SetItem(named.get(), dtype_.get(), dtype.get()) != 0) {
    throw PythonError();
  }
  return Object::take(PyObject_Call(method.get(), arguments.get(), named.get()));
}

}  // namespace cubind::python
