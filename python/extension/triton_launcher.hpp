// Launches of a kernel of Triton, in place of the launcher that Triton 3.4 to 3.6 compiles for its signature.
#pragma once

#include "python/extension/python_object.hpp"

namespace cubind::python {

/// cubind._core.triton_launcher: see _core.pyi.
PyObject* triton_launcher(PyObject*, PyObject* arguments);

/// Before the first launcher is made.
void add_triton_launcher_type(PyObject* module);

}  // namespace cubind::python
