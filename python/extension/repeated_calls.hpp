// Calls of a kernel that repeat an earlier one: from named arguments to the launch without a line of Python.
#pragma once

#include "python/extension/python_object.hpp"

namespace cubind::python {

/// cubind._core.RepeatedCalls: the calls that Python has checked and launched. A call repeats one of them if
/// it names the same arguments in the same order, its tensors have the same type, shape and device and are
/// contiguous, and what of the problem it gives is the same. Addresses and scalars may differ: a launch
/// checks them itself. The newest calls are kept. Used with the GIL held.
void add_repeated_calls_type(PyObject* module);

}  // namespace cubind::python
