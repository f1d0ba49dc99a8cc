#include "python/extension/launcher.hpp"

#include <algorithm>
#include <array>

#include "python/extension/argument_value.hpp"
#include "python/extension/boxed.hpp"

namespace cubind::python {
namespace {

struct Launcher {
  PreparedLaunch launch;
  BoundKernel kernel;
  std::vector<Object> names;  // interned
  std::vector<ArgumentValue> values;
  Object kept;  // what the values point into
  Object stream, device;
};

PyTypeObject* launcher_type = nullptr;

std::size_t number_of(const Launcher& launcher, PyObject* name) {
  for (std::size_t i = 0; i < launcher.names.size(); ++i) {
    if (launcher.names[i].get() == name || PyUnicode_Compare(launcher.names[i].get(), name) == 0) {
      return i;
    }
  }
  raise(PyExc_TypeError, launcher.kernel.rule().kernel() + " takes no argument " + text_of(name));
}

cuda::Stream stream_of(const Launcher& launcher) {
  if (!launcher.device) {
    return stream_at(launcher.stream.get());
  }
  const Object now =
      Object::take(PyObject_CallFunctionObjArgs(launcher.stream.get(), launcher.device.get(), nullptr));
  return stream_at(now.get());
}

void check_count(const Launcher& launcher, std::size_t given) {
  if (given > launcher.values.size()) {
    raise(PyExc_TypeError, launcher.kernel.rule().kernel() + " takes " +
                               std::to_string(launcher.values.size()) + " arguments, " +
                               std::to_string(given) + " were given");
  }
}

void launch(const Launcher& launcher, PyObject* const* given, std::size_t positional, PyObject* names) {
  check_count(launcher, positional);
  const std::vector<Parameter>& parameters = launcher.kernel.arguments();
  std::array<ArgumentValue, BoundKernel::kMaxParameters> values;
  std::ranges::copy(launcher.values, values.begin());
  for (std::size_t i = 0; i < positional; ++i) {
    values[i] = argument_value(given[i], parameters[i]);
  }
  const Py_ssize_t named = names == nullptr ? 0 : PyTuple_Size(names);
  for (Py_ssize_t i = 0; i < named; ++i) {
    const std::size_t number = number_of(launcher, PyTuple_GetItem(names, i));
    values[number] = argument_value(given[positional + static_cast<std::size_t>(i)], parameters[number]);
  }
  launcher.launch.launch(std::span(values).first(launcher.values.size()), stream_of(launcher));
}

PyObject* call(PyObject* self, PyObject* const* given, Py_ssize_t count, PyObject* names) {
  return guarded([&] {
    launch(unbox<Launcher>(self), given, static_cast<std::size_t>(count), names);
    return Object::share(Py_None);
  });
}

PyMethodDef call_definition = {"launch", as_method(call), METH_FASTCALL | METH_KEYWORDS,
                               "Launches the kernel."};

PyObject* captured(PyObject* self, PyObject*) {
  return guarded([&] {
    Object held = Object::take(PyDict_New());
    const Launcher& launcher = unbox<Launcher>(self);
    for (const auto& [argument, pointer] : launcher.launch.captured()) {
      const Object address = Object::take(PyLong_FromUnsignedLongLong(pointer));
      if (PyDict_SetItem(held.get(), launcher.names[argument].get(), address.get()) != 0) {
        throw PythonError();
      }
    }
    return held;
  });
}

PyMethodDef methods[] = {{"captured", captured, METH_NOARGS, "The buffers that a CUDA graph holds."},
                         {nullptr, nullptr, 0, nullptr}};

}  // namespace

void add_launcher_type(PyObject* module) {
  launcher_type = boxed_type<Launcher>(module, "cubind._core.Launcher", methods, nullptr, "Behind a launch.");
}

Object make_launcher(PreparedLaunch launch, const BoundKernel& kernel, PyObject* bound, PyObject* stream,
                     PyObject* device) {
  Launcher launcher{std::move(launch), kernel, {}, {}, Object::share(bound), Object::share(stream), {}};
  if (device != Py_None) {
    launcher.device = Object::share(device);
  }
  const std::vector<Parameter>& parameters = kernel.arguments();
  check_count(launcher, 0);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    launcher.names.push_back(interned(parameters[i].name.c_str()));
    const Object given = Object::take(PySequence_GetItem(bound, static_cast<Py_ssize_t>(i)));
    launcher.values.push_back(argument_value(given.get(), parameters[i]));
  }
  return boxed_function(call_definition, launcher_type, std::move(launcher));
}

}  // namespace cubind::python
