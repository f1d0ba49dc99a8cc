// cubind._core.Torch and cubind._core.OperatorCall.
#pragma once

#include <memory>

#include "python/extension/python_object.hpp"
#include "python/extension/torch_access.hpp"

namespace cubind::python {

/// After add_kernel_types().
void add_operator_types(PyObject* module);

/// That of a cubind._core.Torch. Throws PythonError with a TypeError for anything else.
std::shared_ptr<const TorchAccess> torch_access(PyObject* torch);

}  // namespace cubind::python
