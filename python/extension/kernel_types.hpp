// cubind._core.Rule and cubind._core.Kernel.
#pragma once

#include "python/extension/python_object.hpp"

namespace cubind::python {

void add_kernel_types(PyObject* module);

}  // namespace cubind::python
