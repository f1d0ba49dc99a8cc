// cubind._core.Rule and cubind._core.Kernel.
#pragma once

#include "client/bound_kernel.hpp"
#include "python/extension/python_object.hpp"

namespace cubind::python {

void add_kernel_types(PyObject* module);

/// That of a cubind._core.Kernel. Throws PythonError with a TypeError for anything else.
const BoundKernel& bound_kernel(PyObject* kernel);

}  // namespace cubind::python
