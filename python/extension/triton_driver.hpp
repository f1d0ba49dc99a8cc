// The driver as Triton's launchers use it, with Triton's errors.
#pragma once

#include "cuda_api/driver_api.hpp"
#include "python/extension/python_object.hpp"

namespace cubind::python {

/// The process's table. Throws Error(FailedPrecondition) without a driver or without a device.
const cuda::DriverApi& triton_driver();

/// Throws PythonError with the RuntimeError that Triton raises, unless `result` is Success.
void check_as_triton(const cuda::DriverApi& driver, cuda::Result result);

/// Makes the device's primary context current in a thread that has none.
void ensure_context(const cuda::DriverApi& driver, cuda::DeviceOrdinal device);

/// An int of Python as C's; throws PythonError with an OverflowError where it does not fit.
int c_int(PyObject* object);
/// A handle of the driver, or an address: the low 64 bits. Throws PythonError for what is no int.
unsigned long long low_bits(PyObject* object);

/// cubind._core.triton_load_binary and triton_device_properties: see _core.pyi.
PyObject* triton_load_binary(PyObject*, PyObject* arguments);
PyObject* triton_device_properties(PyObject*, PyObject* arguments);

}  // namespace cubind::python
