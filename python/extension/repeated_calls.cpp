#include "python/extension/repeated_calls.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "client/bound_kernel.hpp"
#include "python/extension/argument_value.hpp"
#include "python/extension/boxed.hpp"
#include "python/extension/kernel_types.hpp"
#include "python/extension/operator_types.hpp"
#include "python/extension/torch_access.hpp"

namespace cubind::python {
namespace {

constexpr std::size_t kMaxCalls = 64;  // of one kernel
constexpr std::size_t kMaxNamed = 32, kMaxValues = 32;

// An argument of the current call. Both objects are borrowed from the call's keywords.
struct Item {
  PyObject* name = nullptr;
  PyObject* object = nullptr;
  std::optional<TensorView> view = {};  // of a tensor
};
using Items = std::array<Item, kMaxNamed>;

bool is_number(PyObject* object) { return PyLong_Check(object) != 0 || PyFloat_Check(object) != 0; }

bool is_exactly(PyObject* object, PyTypeObject& type) { return Py_TYPE(object) == &type; }

bool same_text(PyObject* a, PyObject* b) { return a == b || PyUnicode_Compare(a, b) == 0; }

// A part of a problem: of other types than these a value may change while the object stays the same.
bool same_part(PyObject* a, PyObject* b) {
  if (a == b || Py_TYPE(a) != Py_TYPE(b)) {
    return a == b;
  }
  if (is_exactly(a, PyUnicode_Type)) {
    return same_text(a, b);
  }
  const int same = is_exactly(a, PyLong_Type) ? PyObject_RichCompareBool(a, b, Py_EQ) : 0;
  if (same < 0) {
    throw PythonError();
  }
  return same != 0;
}

// What an argument was, and has to be again.
struct Given {
  enum class Kind : std::uint8_t { Tensor, Address, Number, Part };

  Object name;
  Kind kind = Kind::Number;
  TensorView tensor;  // its shape and strides are not those of the tensor any more
  std::vector<std::int64_t> shape;
  Object part;

  bool fits(const Item& item) const {
    if (!same_text(item.name, name.get())) {
      return false;
    }
    switch (kind) {
      case Kind::Tensor:
        return item.view && fits(*item.view);
      case Kind::Address:
        return PyLong_Check(item.object) != 0;
      case Kind::Number:
        return is_number(item.object);
      case Kind::Part:
        return same_part(item.object, part.get());
    }
    return false;
  }
  bool fits(const TensorView& view) const {
    return view.type_code == tensor.type_code && view.type_bits == tensor.type_bits &&
           view.lanes == tensor.lanes && view.device_type == tensor.device_type &&
           view.device_id == tensor.device_id && std::ranges::equal(shape_of(view), shape) &&
           is_contiguous(view);
  }
};

// Memory that a call allocates.
struct Made {
  TorchAccess::Form form;
  bool zero = false;
  bool returned = false;
};

// The source of an argument of the kernel: a number in `given` or `made`, or neither: a buffer without
// elements.
struct Source {
  std::optional<std::size_t> given, made;
};

struct Call {
  std::vector<Given> given;
  std::vector<Made> made;
  std::vector<Source> sources;
  std::size_t like = 0;  // the number of the first tensor
  BoundKernel kernel;
  PreparedLaunch launch;
  std::chrono::steady_clock::time_point until;

  bool fits(std::span<const Item> items) const {
    return std::ranges::equal(items, given,
                              [](const Item& item, const Given& one) { return one.fits(item); });
  }
};

struct RepeatedCalls {
  std::shared_ptr<const TorchAccess> torch;
  Object zero;                                     // the name of the method that clears a tensor
  std::vector<std::shared_ptr<const Call>> calls;  // the last used first
};

// Absent for more arguments than a call that is repeated may have, and for a tensor that torch does not show.
std::optional<std::span<const Item>> read(const TorchAccess& torch, PyObject* named, Items& items) {
  Py_ssize_t at = 0;
  std::size_t count = 0;
  for (Item item; PyDict_Next(named, &at, &item.name, &item.object) != 0; ++count) {
    if (count == kMaxNamed) {
      return std::nullopt;
    }
    if (torch.is_plain(item.object)) {
      item.view = torch.view(item.object);
      if (!item.view) {
        return std::nullopt;
      }
    } else {
      item.view.reset();
    }
    items[count] = item;
  }
  return std::span<const Item>(items).first(count);
}

// Null where the call repeats none.
std::shared_ptr<const Call> find(RepeatedCalls& repeated, std::span<const Item> items) {
  const auto found =
      std::ranges::find_if(repeated.calls, [&](const auto& call) { return call->fits(items); });
  if (found == repeated.calls.end() || (*found)->until <= std::chrono::steady_clock::now()) {
    return nullptr;
  }
  std::rotate(repeated.calls.begin(), found, std::next(found));
  return repeated.calls.front();
}

std::optional<cuda::Stream> stream_for(const TorchAccess& torch, const TensorView& like, PyObject* stream) {
  if (stream == Py_None) {
    return torch.stream(like);
  }
  return PyLong_Check(stream) != 0 ? std::optional(stream_at(stream)) : std::nullopt;
}

bool allocate(const RepeatedCalls& repeated, const Call& call, const Item& like,
              std::array<TorchAccess::Memory, kMaxValues>& memory) {
  for (std::size_t i = 0; i < call.made.size(); ++i) {
    auto made = repeated.torch->empty(like.object, *like.view, call.made[i].form);
    if (!made) {
      return false;
    }
    if (call.made[i].zero) {
      Object::take(PyObject_CallMethodObjArgs(made->tensor.get(), repeated.zero.get(), nullptr));
    }
    memory[i] = std::move(*made);
  }
  return true;
}

Object returned(const Call& call, const std::array<TorchAccess::Memory, kMaxValues>& memory) {
  std::vector<Object> outputs;
  for (std::size_t i = 0; i < call.made.size(); ++i) {
    if (call.made[i].returned) {
      outputs.push_back(memory[i].tensor);
    }
  }
  if (outputs.size() < 2) {
    return outputs.empty() ? Object::share(Py_None) : outputs.front();
  }
  Object tuple = Object::take(PyTuple_New(static_cast<Py_ssize_t>(outputs.size())));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(i), outputs[i].release());
  }
  return tuple;
}

// Py_NotImplemented where the call repeats none: then nothing was launched.
Object launch(RepeatedCalls& repeated, PyObject* named, PyObject* stream) {
  Object other = Object::share(Py_NotImplemented);
  Items items;
  const auto given = repeated.calls.empty() ? std::nullopt : read(*repeated.torch, named, items);
  // Kept: Python runs while memory is allocated.
  const std::shared_ptr<const Call> call = given ? find(repeated, *given) : nullptr;
  if (call == nullptr || !repeated.torch->is_quiet()) {
    return other;
  }
  const Item& like = items[call->like];
  const std::optional<cuda::Stream> where = stream_for(*repeated.torch, *like.view, stream);
  std::array<TorchAccess::Memory, kMaxValues> memory;
  if (!where || !allocate(repeated, *call, like, memory)) {
    return other;
  }
  std::array<ArgumentValue, kMaxValues> values;
  for (std::size_t i = 0; i < call->sources.size(); ++i) {
    const Source& source = call->sources[i];
    if (source.given) {
      const Item& item = items[*source.given];
      values[i] =
          item.view ? address_of(*item.view) : argument_value(item.object, call->kernel.arguments()[i]);
    } else {
      values[i] = source.made ? address_of(memory[*source.made].view) : cuda::DevicePtr{0};
    }
  }
  call->launch.launch(std::span(values).first(call->sources.size()), *where);
  return returned(*call, memory);
}

// ---- What is kept of a call ----

bool is_part(const TorchAccess& torch, PyObject* object) {
  return is_exactly(object, PyLong_Type) || is_exactly(object, PyBool_Type) ||
         is_exactly(object, PyUnicode_Type) || torch.is_dtype(object);
}

// `parameter`: null for a part of the problem. Absent for what may be another value in a call that looks the
// same, and for what is converted.
std::optional<Given> given_of(const TorchAccess& torch, const Item& item, const Parameter* parameter) {
  Given given;
  given.name = Object::share(item.name);
  bool is_simple = false;
  if (parameter == nullptr) {
    given.kind = Given::Kind::Part;
    given.part = Object::share(item.object);
    is_simple = is_part(torch, item.object);
  } else if (parameter->source != ParameterSource::Buffer) {
    given.kind = Given::Kind::Number;
    is_simple = is_number(item.object);
  } else if (item.view) {
    given.kind = Given::Kind::Tensor;
    given.tensor = *item.view;
    const auto shape = shape_of(*item.view);
    given.shape.assign(shape.begin(), shape.end());
    is_simple = is_contiguous(*item.view);
  } else {
    given.kind = Given::Kind::Address;
    is_simple = PyLong_Check(item.object) != 0;
  }
  return is_simple ? std::optional(std::move(given)) : std::nullopt;
}

bool contains(PyObject* list, PyObject* object) {
  for (Py_ssize_t i = 0; i < PyList_Size(list); ++i) {
    if (PyList_GetItem(list, i) == object) {
      return true;
    }
  }
  return false;
}

// Where the kernel's argument `parameter`, which had this value, comes from; adds to the call what it
// allocates. Absent for memory that is no plain tensor.
std::optional<Source> source_of(const TorchAccess& torch, const Parameter& parameter, PyObject* value,
                                PyObject* returned, Call& call) {
  const auto named = std::ranges::find_if(
      call.given, [&](const Given& given) { return text_of(given.name.get()) == parameter.name; });
  if (named != call.given.end()) {
    return Source{static_cast<std::size_t>(named - call.given.begin()), {}};
  }
  if (PyLong_Check(value) != 0) {
    return Source{};
  }
  const std::optional<TensorView> view = torch.is_plain(value) ? torch.view(value) : std::nullopt;
  if (!view) {
    return std::nullopt;
  }
  const auto shape = shape_of(*view);
  call.made.push_back({torch.form({shape.begin(), shape.end()}, torch.dtype_of(value)),
                       parameter.role == Role::Zero, contains(returned, value)});
  return Source{{}, call.made.size() - 1};
}

bool add_given(const TorchAccess& torch, std::span<const Item> items, Call& call) {
  const std::vector<Parameter>& parameters = call.kernel.arguments();
  for (const Item& item : items) {
    const auto parameter = std::ranges::find(parameters, text_of(item.name), &Parameter::name);
    auto given = given_of(torch, item, parameter == parameters.end() ? nullptr : &*parameter);
    if (!given) {
      return false;
    }
    call.given.push_back(std::move(*given));
  }
  const auto like = std::ranges::find(call.given, Given::Kind::Tensor, &Given::kind);
  call.like = static_cast<std::size_t>(like - call.given.begin());
  return like != call.given.end();
}

bool add_sources(const TorchAccess& torch, PyObject* values, PyObject* returned, Call& call) {
  const std::vector<Parameter>& parameters = call.kernel.arguments();
  if (parameters.size() > kMaxValues || static_cast<std::size_t>(PyList_Size(values)) != parameters.size()) {
    return false;
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    PyObject* value = PyList_GetItem(values, static_cast<Py_ssize_t>(i));
    const auto source = source_of(torch, parameters[i], value, returned, call);
    if (!source) {
      return false;
    }
    call.sources.push_back(*source);
  }
  return true;
}

std::chrono::steady_clock::time_point time_point(double seconds) {
  using Clock = std::chrono::steady_clock;  // that of time.monotonic()
  constexpr double kFarAway = 1e9;
  const std::chrono::duration<double> since_start(seconds);
  return seconds > kFarAway ? Clock::time_point::max()
                            : Clock::time_point(std::chrono::duration_cast<Clock::duration>(since_start));
}

void know(RepeatedCalls& repeated, PyObject* named, Call call, PyObject* values, PyObject* returned) {
  const TorchAccess& torch = *repeated.torch;
  Items items;
  const auto given = read(torch, named, items);
  if (!given || !add_given(torch, *given, call) || !add_sources(torch, values, returned, call)) {
    return;
  }
  auto calls = repeated.calls;
  std::erase_if(calls, [&](const auto& older) { return older->fits(*given); });
  calls.insert(calls.begin(), std::make_shared<const Call>(std::move(call)));
  calls.resize(std::min(calls.size(), kMaxCalls));
  repeated.calls.swap(calls);  // Python may run as older ones end
}

// ---- The type ----

int init(PyObject* self, PyObject* arguments, PyObject*) {
  PyObject* torch = nullptr;
  if (PyArg_ParseTuple(arguments, "O", &torch) == 0) {
    return -1;
  }
  PyObject* done = guarded([&] {
    set_boxed(self, std::make_unique<RepeatedCalls>(RepeatedCalls{
                        torch_access(torch), Object::take(PyUnicode_InternFromString("zero_")), {}}));
    return Object::share(Py_None);
  });
  Py_XDECREF(done);
  return done == nullptr ? -1 : 0;
}

PyObject* launch_method(PyObject* self, PyObject* const* given, Py_ssize_t count) {
  return guarded([&] {
    if (count != 2 || PyDict_Check(given[0]) == 0) {
      raise(PyExc_TypeError, "expected launch(named, stream)");
    }
    return launch(unbox<RepeatedCalls>(self), given[0], given[1]);
  });
}

PyObject* know_method(PyObject* self, PyObject* arguments) {
  PyObject *named = nullptr, *kernel = nullptr, *dims = nullptr, *values = nullptr, *returned = nullptr;
  double until = 0;
  if (PyArg_ParseTuple(arguments, "O!OO!O!O!d", &PyDict_Type, &named, &kernel, &PyTuple_Type, &dims,
                       &PyList_Type, &values, &PyList_Type, &returned, &until) == 0) {
    return nullptr;
  }
  return guarded([&] {
    RepeatedCalls& repeated = unbox<RepeatedCalls>(self);
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(PyTuple_Size(dims)));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = integer_of(PyTuple_GetItem(dims, static_cast<Py_ssize_t>(i)));
    }
    const BoundKernel& bound = bound_kernel(kernel);
    if (auto launch = bound.prepare(numbers)) {
      know(repeated, named, {{}, {}, {}, 0, bound, std::move(*launch), time_point(until)}, values, returned);
    }
    return Object::share(Py_None);
  });
}

PyObject* clear_method(PyObject* self, PyObject*) {
  return guarded([&] {
    const auto calls = std::exchange(unbox<RepeatedCalls>(self).calls, {});  // Python may run as they end
    return Object::share(Py_None);
  });
}

}  // namespace

void add_repeated_calls_type(PyObject* module) {
  static PyMethodDef methods[] = {
      {"launch", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(launch_method)), METH_FASTCALL,
       "launch(named, stream): launches and returns the outputs that were left out, as Kernel does; "
       "NotImplemented "
       "where the call repeats none that is known. stream: None for torch's current one."},
      {"know", know_method, METH_VARARGS,
       "know(named, kernel, dims, values, returned, until): a call that was checked and launched. values: of "
       "each of "
       "the kernel's arguments; returned: those of them that the call returned. until: seconds of "
       "time.monotonic(). "
       "Nothing is kept of a call whose arguments are not plain tensors, ints, floats and text."},
      {"clear", clear_method, METH_NOARGS, "clear(): no call is known any more."},
      {nullptr, nullptr, 0, nullptr}};
  boxed_type<RepeatedCalls>(module, "cubind._core.RepeatedCalls", methods, init,
                            "RepeatedCalls(torch): calls of one kernel that need no check in Python");
}

}  // namespace cubind::python
