// cubind._core.Torch and cubind._core.OperatorCall.
#pragma once

#include "python/extension/python_object.hpp"

namespace cubind::python {

/// After add_kernel_types().
void add_operator_types(PyObject* module);

}  // namespace cubind::python
