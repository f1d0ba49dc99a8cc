#include "python/extension/python_object.hpp"

#include <unistd.h>

#include "base/error.hpp"

namespace cubind::python {
namespace {

void set_error(const Error& error) {
  try {
    const Object module = Object::take(PyImport_ImportModule("cubind.errors"));
    const Object made =
        Object::take(PyObject_CallMethod(module.get(), "make_error", "iss", static_cast<int>(error.code()),
                                         error.where().c_str(), error.cause().c_str()));
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(made.get())), made.get());
  } catch (const PythonError&) {
    // The exception is set: that of the attempt.
  }
}

}  // namespace

WithoutGil::~WithoutGil() {
  try {
    PyEval_RestoreThread(state_);
  } catch (
      ...) {  // CPython before 3.14 ends the thread: glibc unwinds, and must not be let out of a destructor
    while (true) {
      ::pause();
    }
  }
}

void raise(PyObject* type, const std::string& message) {
  PyErr_SetString(type, message.c_str());
  throw PythonError();
}

std::string text_of(PyObject* object) {
  Py_ssize_t size = 0;
  const char* bytes = PyUnicode_AsUTF8AndSize(object, &size);
  if (bytes == nullptr) {
    throw PythonError();
  }
  return {bytes, static_cast<std::size_t>(size)};
}

long long integer_of(PyObject* object) {
  const long long value = PyLong_AsLongLong(object);
  if (value == -1 && PyErr_Occurred() != nullptr) {
    if (PyErr_ExceptionMatches(PyExc_OverflowError) != 0) {
      PyErr_Clear();
      throw Error(ErrorCode::InvalidArgument, "", "an int does not fit into 64 bits");
    }
    throw PythonError();
  }
  return value;
}

unsigned long long address_of(PyObject* integer) {
  const unsigned long long address = PyLong_AsUnsignedLongLong(integer);
  if (address == static_cast<unsigned long long>(-1) && PyErr_Occurred() != nullptr) {
    throw PythonError();
  }
  return address;
}

Object interned(const char* name) { return Object::take(PyUnicode_InternFromString(name)); }

Object text(std::string_view value) {
  return Object::take(PyUnicode_FromStringAndSize(value.data(), static_cast<Py_ssize_t>(value.size())));
}

Object tuple_of(std::span<const std::int64_t> values) {
  return tuple_of(values.size(), [&](std::size_t i) { return Object::take(PyLong_FromLongLong(values[i])); });
}

std::size_t size_of(PyObject* sequence) {
  const Py_ssize_t size = PySequence_Size(sequence);
  if (size < 0) {
    throw PythonError();
  }
  return static_cast<std::size_t>(size);
}

void set_exception(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const PythonError&) {
    // is set
  } catch (const Error& fault) {
    set_error(fault);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& fault) {
    PyErr_SetString(PyExc_RuntimeError, fault.what());
  }
}

}  // namespace cubind::python
