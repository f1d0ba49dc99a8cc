// What a Python caller passes for an argument of a kernel.
#pragma once

#include "client/arguments.hpp"
#include "cuda_api/driver_types.hpp"
#include "python/extension/python_object.hpp"

namespace cubind::python {

/// For a buffer: an object with data_ptr() (torch), one with __cuda_array_interface__ (CuPy, Numba, JAX), or
/// the address as an int. For a scalar: an int, a float, or what converts to a float. None: absent. Reads the
/// pointer alone: shape, type and layout are the caller's to check. Throws PythonError with a TypeError for
/// anything else.
ArgumentValue argument_value(PyObject* object, const Parameter& parameter);

/// Python has the address of a stream as an int. Throws PythonError for what is none.
cuda::Stream stream_at(PyObject* address);

}  // namespace cubind::python
