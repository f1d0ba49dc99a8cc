// A C++ value as a Python object of a heap type.
#pragma once

#include <memory>

#include "python/extension/python_object.hpp"

namespace cubind::python {

/// The layout of the instances of a type made by boxed_type<T>().
template <typename T>
struct Boxed {
  PyObject_HEAD T* value;  // null until __init__ has set it
};

template <typename T>
void destroy_boxed(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete reinterpret_cast<Boxed<T>*>(self)->value;
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

/// The value of an instance. Throws PythonError for one whose __init__ has not run.
template <typename T>
T& unbox(PyObject* self) {
  T* value = reinterpret_cast<Boxed<T>*>(self)->value;
  if (value == nullptr) {
    raise(PyExc_RuntimeError, "the object was not initialized");
  }
  return *value;
}

/// The value of `object`, which must be an instance of `type`.
template <typename T>
T& unbox(PyObject* object, PyTypeObject* type, const char* expected) {
  if (PyObject_TypeCheck(object, type) == 0) {
    raise(PyExc_TypeError, std::string("expected a ") + expected);
  }
  return unbox<T>(object);
}

/// A tp_init: sets the value that `make` gives; an earlier one ends.
template <typename T, typename Make>
int init_boxed(PyObject* self, const Make& make) noexcept {
  PyObject* done = guarded([&] {
    delete std::exchange(reinterpret_cast<Boxed<T>*>(self)->value, std::make_unique<T>(make()).release());
    return Object::share(Py_None);
  });
  Py_XDECREF(done);
  return done == nullptr ? -1 : 0;
}

/// A builtin function whose self is an instance of `type` with the value.
template <typename T>
Object boxed_function(PyMethodDef& definition, PyTypeObject* type, T value) {
  const Object self = Object::take(PyType_GenericAlloc(type, 0));
  reinterpret_cast<Boxed<T>*>(self.get())->value = std::make_unique<T>(std::move(value)).release();
  return Object::take(PyCFunction_NewEx(&definition, self.get(), nullptr));
}

/// Makes the type and adds it to the module. The name is "cubind._core.Name"; both live as long as the
/// process. Without `init` Python cannot make instances.
template <typename T>
PyTypeObject* boxed_type(PyObject* module, const char* name, PyMethodDef* methods, initproc init,
                         const char* doc) {
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(destroy_boxed<T>)},
                         {Py_tp_methods, methods},
                         {Py_tp_doc, const_cast<char*>(doc)},
                         {init == nullptr ? 0 : Py_tp_init, reinterpret_cast<void*>(init)},
                         {Py_tp_new, reinterpret_cast<void*>(PyType_GenericNew)},
                         {0, nullptr}};
  PyType_Spec spec{name, sizeof(Boxed<T>), 0, Py_TPFLAGS_DEFAULT, slots};
  if (init == nullptr) {
    spec.flags |= Py_TPFLAGS_DISALLOW_INSTANTIATION;
  }
  Object type = Object::take(PyType_FromSpec(&spec));
  if (PyModule_AddType(module, reinterpret_cast<PyTypeObject*>(type.get())) != 0) {
    throw PythonError();
  }
  return reinterpret_cast<PyTypeObject*>(type.release());
}

}  // namespace cubind::python
