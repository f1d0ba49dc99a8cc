#include "python/extension/triton_driver.hpp"

#include <climits>

#include "client/gpu.hpp"

namespace cubind::python {
namespace {

// Above it, a kernel has to opt in for its dynamic shared memory.
constexpr int kSharedWithoutOptIn = 48 << 10;

struct LoadedBinary {
  cuda::Module module = nullptr;
  cuda::Function function = nullptr;
  int registers = 0, local_bytes = 0, most_threads = 0;
};

// The first failure ends the sequence, as with Triton.
cuda::Result opt_in(const cuda::DriverApi& driver, cuda::Function function, int shared_optin) {
  int shared_static = 0;
  cuda::Result result = driver.func_set_cache_config(function, cuda::CacheConfig::PreferShared);
  if (result == cuda::Result::Success) {
    result = driver.func_get_attribute(&shared_static, cuda::FunctionAttribute::SharedSizeBytes, function);
  }
  if (result == cuda::Result::Success) {
    result = driver.func_set_attribute(function, cuda::FunctionAttribute::MaxDynamicSharedBytes,
                                       shared_optin - shared_static);
  }
  return result;
}

cuda::Result load(const cuda::DriverApi& driver, const char* name, const char* cubin, LoadedBinary& to) {
  cuda::Result result = driver.module_load_data(&to.module, cubin);
  if (result == cuda::Result::Success) {
    result = driver.module_get_function(&to.function, to.module, name);
  }
  const std::pair<cuda::FunctionAttribute, int*> wanted[] = {
      {cuda::FunctionAttribute::NumRegs, &to.registers},
      {cuda::FunctionAttribute::LocalSizeBytes, &to.local_bytes},
      {cuda::FunctionAttribute::MaxThreadsPerBlock, &to.most_threads}};
  for (const auto& [attribute, value] : wanted) {
    if (result == cuda::Result::Success) {
      result = driver.func_get_attribute(value, attribute, to.function);
    }
  }
  return result;
}

int attribute(const cuda::DriverApi& driver, cuda::DeviceAttribute which, cuda::DeviceOrdinal device) {
  int value = 0;
  check_as_triton(driver, driver.device_get_attribute(&value, which, device));
  return value;
}

}  // namespace

const cuda::DriverApi& triton_driver() {
  static const cuda::DriverApi& driver = visible_gpu(std::nullopt).driver;
  return driver;
}

void check_as_triton(const cuda::DriverApi& driver, cuda::Result result) {
  if (result == cuda::Result::Success) {
    return;
  }
  const char* text = nullptr;
  const bool told = driver.get_error_string(result, &text) == cuda::Result::Success && text != nullptr;
  raise(PyExc_RuntimeError, std::string("Triton Error [CUDA]: ") +
                                (told ? text : std::to_string(static_cast<int>(result)).c_str()));
}

void ensure_context(const cuda::DriverApi& driver, cuda::DeviceOrdinal device) {
  cuda::Context context = nullptr;
  check_as_triton(driver, driver.ctx_get_current(&context));
  if (context == nullptr) {
    check_as_triton(driver, driver.primary_ctx_retain(&context, device));
    check_as_triton(driver, driver.ctx_set_current(context));
  }
}

int c_int(PyObject* object) {
  const long value = PyLong_AsLong(object);
  if (value == -1 && PyErr_Occurred() != nullptr) {
    throw PythonError();
  }
  if (value < INT_MIN || value > INT_MAX) {
    raise(PyExc_OverflowError, std::to_string(value) + " does not fit a C int");
  }
  return static_cast<int>(value);
}

unsigned long long low_bits(PyObject* object) {
  const unsigned long long value = PyLong_AsUnsignedLongLongMask(object);
  if (value == static_cast<unsigned long long>(-1) && PyErr_Occurred() != nullptr) {
    throw PythonError();
  }
  return value;
}

PyObject* triton_load_binary(PyObject*, PyObject* arguments) {
  return guarded([&] {
    const char *name = nullptr, *cubin = nullptr;
    Py_ssize_t size = 0;
    int shared = 0, device = 0;
    parse(arguments, "ss#ii", &name, &cubin, &size, &shared, &device);
    const cuda::DriverApi& driver = triton_driver();
    ensure_context(driver, device);
    LoadedBinary loaded;
    cuda::Result result{};
    {
      const WithoutGil others_run;
      result = load(driver, name, cubin, loaded);
    }
    check_as_triton(driver, result);
    const int shared_optin = attribute(driver, cuda::DeviceAttribute::MaxSharedPerBlockOptin, device);
    if (shared > kSharedWithoutOptIn && shared_optin > kSharedWithoutOptIn) {
      check_as_triton(driver, opt_in(driver, loaded.function, shared_optin));
    }
    return Object::take(Py_BuildValue("(KKiii)", reinterpret_cast<unsigned long long>(loaded.module),
                                      reinterpret_cast<unsigned long long>(loaded.function), loaded.registers,
                                      loaded.local_bytes / 4, loaded.most_threads));
  });
}

PyObject* triton_device_properties(PyObject*, PyObject* arguments) {
  return guarded([&] {
    int ordinal = 0;
    parse(arguments, "i", &ordinal);
    const cuda::DriverApi& driver = triton_driver();
    cuda::DeviceOrdinal device = 0;
    check_as_triton(driver, driver.device_get(&device, ordinal));
    const auto value = [&](cuda::DeviceAttribute which) { return attribute(driver, which, device); };
    return Object::take(Py_BuildValue(
        "{s:i,s:i,s:i,s:i,s:i,s:i,s:i}", "max_shared_mem",
        value(cuda::DeviceAttribute::MaxSharedPerBlockOptin), "max_num_regs",
        value(cuda::DeviceAttribute::MaxRegistersPerBlock), "multiprocessor_count",
        value(cuda::DeviceAttribute::MultiprocessorCount), "warpSize", value(cuda::DeviceAttribute::WarpSize),
        "sm_clock_rate", value(cuda::DeviceAttribute::ClockRateKhz), "mem_clock_rate",
        value(cuda::DeviceAttribute::MemoryClockRateKhz), "mem_bus_width",
        value(cuda::DeviceAttribute::MemoryBusWidthBits)));
  });
}

}  // namespace cubind::python
