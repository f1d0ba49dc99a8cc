// CPython's objects under RAII, and errors both ways. Only the limited API of CPython 3.11 is used: one
// binary serves all later versions.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cubind::python {

/// The exception of Python that is already set: unwinds to guarded().
struct PythonError {};

/// An owned reference. The GIL is held wherever one is made, moved to or destroyed.
class Object {
 public:
  Object() = default;
  /// Takes over a new reference; null throws PythonError: the exception is set then.
  static Object take(PyObject* object) {
    if (object == nullptr) {
      throw PythonError();
    }
    return Object(object);
  }
  static Object share(PyObject* object) {
    Py_XINCREF(object);
    return Object(object);
  }
  Object(const Object& other) : object_(other.object_) { Py_XINCREF(object_); }
  Object(Object&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Object& operator=(Object other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Object() { Py_XDECREF(object_); }

  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  explicit Object(PyObject* object) : object_(object) {}
  PyObject* object_ = nullptr;
};

/// Other threads of Python run while one lives. If the interpreter ends meanwhile, the destructor never
/// returns: the thread sleeps until the process ends.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;
  ~WithoutGil();

 private:
  PyThreadState* state_;
};

/// Sets `type` with a message and unwinds.
[[noreturn]] void raise(PyObject* type, const std::string& message);

/// UTF-8; throws PythonError for what is no str.
std::string text_of(PyObject* object);
/// Throws PythonError for what is no int of 64 bits.
long long integer_of(PyObject* object);
/// The 64 bits of an address; throws PythonError for what is none.
unsigned long long address_of(PyObject* integer);
/// A str that is found by its pointer where it is a name.
Object interned(const char* name);
Object text(std::string_view value);
/// Of a sequence; throws PythonError for what is none.
std::size_t size_of(PyObject* sequence);

/// What `of` gives for each item of a sequence.
template <typename Of>
auto each_of(PyObject* sequence, const Of& of) {
  std::vector<decltype(of(sequence))> all;
  const std::size_t count = size_of(sequence);
  for (std::size_t i = 0; i < count; ++i) {
    all.push_back(of(Object::take(PySequence_GetItem(sequence, static_cast<Py_ssize_t>(i))).get()));
  }
  return all;
}

/// A tuple of the objects that `item` gives for 0 to `count` - 1.
template <typename Item>
Object tuple_of(std::size_t count, const Item& item) {
  Object tuple = Object::take(PyTuple_New(static_cast<Py_ssize_t>(count)));
  for (std::size_t i = 0; i < count; ++i) {
    PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(i), Object(item(i)).release());
  }
  return tuple;
}
Object tuple_of(std::span<const std::int64_t> values);

/// PyArg_ParseTuple, but it throws PythonError.
template <typename... Values>
void parse(PyObject* arguments, const char* format, Values... values) {
  if (PyArg_ParseTuple(arguments, format, values...) == 0) {
    throw PythonError();
  }
}

/// For a PyMethodDef.
template <typename Function>
PyCFunction as_method(Function* function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

/// An exception of C++ as one of Python; an Error becomes what cubind.errors makes of its code, place and
/// cause.
void set_exception(const std::exception_ptr& error);

/// Calls `body`, which returns a new reference; whatever it throws becomes a Python exception and null.
template <typename Body>
PyObject* guarded(const Body& body) noexcept {
  try {
    return body().release();
  } catch (...) {
    set_exception(std::current_exception());
    return nullptr;
  }
}

}  // namespace cubind::python
