// A launch with everything computed but, where the caller wishes, its arguments: the callable behind
// Kernel.bind().
#pragma once

#include <vector>

#include "client/bound_kernel.hpp"
#include "python/extension/python_object.hpp"

namespace cubind::python {

/// A builtin function f(*arguments, **by_name): the arguments in the order of `kernel.arguments()`, and for
/// each that is left out the value in `bound`, which is kept alive. `stream` is an int, or is
/// called with `device` for one at each launch.
Object make_launcher(PreparedLaunch launch, const BoundKernel& kernel, PyObject* bound, PyObject* stream,
                     PyObject* device);

/// Before the first launcher is made.
void add_launcher_type(PyObject* module);

}  // namespace cubind::python
