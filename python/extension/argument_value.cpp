#include "python/extension/argument_value.hpp"

namespace cubind::python {
namespace {

Object attribute_or_none(PyObject* object, PyObject* name) {
  PyObject* found = PyObject_GetAttr(object, name);
  if (found == nullptr) {
    if (PyErr_ExceptionMatches(PyExc_AttributeError) == 0) {
      throw PythonError();
    }
    PyErr_Clear();
    return {};
  }
  return Object::take(found);
}

cuda::DevicePtr array_address(PyObject* object, const Parameter& parameter) {
  // Made once, never released: a lookup by an interned name costs a pointer comparison.
  static PyObject* const data_ptr = interned("data_ptr").release();
  static PyObject* const interface_name = interned("__cuda_array_interface__").release();
  if (const Object method = attribute_or_none(object, data_ptr)) {
    return address_of(Object::take(PyObject_CallNoArgs(method.get())).get());
  }
  const Object interface = attribute_or_none(object, interface_name);
  PyObject* data = interface ? PyDict_GetItemString(interface.get(), "data") : nullptr;
  if (data == nullptr || PyTuple_Check(data) == 0 || PyTuple_Size(data) < 1) {
    raise(PyExc_TypeError,
          "argument " + parameter.name +
              ": expected an array in GPU memory (torch, CuPy, __cuda_array_interface__) or an address");
  }
  return address_of(PyTuple_GetItem(data, 0));
}

ArgumentValue scalar(PyObject* object, const Parameter& parameter) {
  if (PyLong_Check(object)) {
    return static_cast<std::int64_t>(integer_of(object));
  }
  const double value = PyFloat_AsDouble(object);
  if (value == -1.0 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    raise(PyExc_TypeError, "argument " + parameter.name + ": expected a number of type " +
                               std::string(to_string(parameter.type)));
  }
  return value;
}

}  // namespace

ArgumentValue argument_value(PyObject* object, const Parameter& parameter) {
  if (object == Py_None) {
    return {};
  }
  if (parameter.source != ParameterSource::Buffer) {
    return scalar(object, parameter);
  }
  return PyLong_Check(object) ? address_of(object) : array_address(object, parameter);
}

cuda::Stream stream_at(PyObject* address) {
  return reinterpret_cast<cuda::Stream>(integer_of(address));  // NOLINT: a handle of the driver
}

}  // namespace cubind::python
