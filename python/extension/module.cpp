// cubind._core: what the Python client has in C++. It links neither gRPC nor protobuf.
#include "base/zstd.hpp"
#include "client/answer_trust.hpp"
#include "client/gpu.hpp"
#include "client/held_gpu.hpp"
#include "client/reply_check.hpp"
#include "python/extension/kernel_types.hpp"
#include "python/extension/launcher.hpp"
#include "python/extension/operator_types.hpp"
#include "python/extension/python_object.hpp"
#include "python/extension/triton_driver.hpp"
#include "python/extension/triton_launcher.hpp"

namespace cubind::python {
namespace {

std::string_view view(const char* bytes, Py_ssize_t size) { return {bytes, static_cast<std::size_t>(size)}; }

PyObject* decompress(PyObject*, PyObject* arguments) {
  return guarded([&] {
    const char* frame = nullptr;
    Py_ssize_t size = 0;
    unsigned long long content = 0;
    parse(arguments, "y#K", &frame, &size, &content);
    const std::string bytes = zstd_decompress(view(frame, size), static_cast<std::size_t>(content));
    return Object::take(PyBytes_FromStringAndSize(bytes.data(), static_cast<Py_ssize_t>(bytes.size())));
  });
}

// Other threads of Python run meanwhile: starting NVML takes long.
Gpu read_gpu(int ordinal) {
  const WithoutGil others_run;
  return ordinal < 0 ? current_gpu() : gpu_at(static_cast<std::size_t>(ordinal));
}

PyObject* fact_object(const std::string& text) { return PyUnicode_FromString(text.c_str()); }
PyObject* fact_object(std::uint64_t number) { return PyLong_FromUnsignedLongLong(number); }

// The fields of v1.DeviceFacts and v1.DriverVersion.
PyObject* gpu(PyObject*, PyObject* arguments) {
  return guarded([&] {
    int ordinal = -1;
    parse(arguments, "|i", &ordinal);
    const Gpu gpu = read_gpu(ordinal);
    const Object facts = Object::take(PyDict_New());
    visit_facts(gpu.facts, [&]<typename Value>(const char* name, const Value& value) {
      const Object item = Object::take(fact_object(value));
      if (PyDict_SetItemString(facts.get(), name, item.get()) != 0) {
        throw PythonError();
      }
    });
    return Object::take(Py_BuildValue("{s:O,s:{s:I,s:s}}", "facts", facts.get(), "driver", "cuda",
                                      gpu.driver.cuda, "version", gpu.driver.version.c_str()));
  });
}

std::optional<HeldGpu> read_held_gpu(int ordinal) {
  const WithoutGil others_run;
  return synchronized_gpu(ordinal < 0 ? std::nullopt : std::optional(static_cast<std::size_t>(ordinal)));
}

// The fields of v1.LentGpu but for the memory.
PyObject* synchronized(PyObject*, PyObject* arguments) {
  return guarded([&] {
    int ordinal = -1;
    parse(arguments, "|i", &ordinal);
    const std::optional<HeldGpu> held = read_held_gpu(ordinal);
    if (!held) {
      return Object::share(Py_None);
    }
    return Object::take(Py_BuildValue("{s:s,s:I,s:s}", "uuid", held->uuid.c_str(), "pid", held->process,
                                      "host", held->host.c_str()));
  });
}

PyObject* check_reply(PyObject*, PyObject* arguments) {
  return guarded([&] {
    const char *request = nullptr, *reply = nullptr;
    Py_ssize_t request_size = 0, reply_size = 0;
    parse(arguments, "y#y#", &request, &request_size, &reply, &reply_size);
    const Told told = read_told(view(reply, reply_size));
    cubind::check_reply(read_asked(view(request, request_size)), told);
    return Object::share(is_unsettled(told) ? Py_True : Py_False);
  });
}

PyObject* check_signed(PyObject*, PyObject* arguments) {
  return guarded([&] {
    const char *trust = nullptr, *request = nullptr, *reply = nullptr, *cubin = nullptr;
    Py_ssize_t request_size = 0, reply_size = 0, cubin_size = 0;
    parse(arguments, "sy#y#y#", &trust, &request, &request_size, &reply, &reply_size, &cubin, &cubin_size);
    AnswerTrust::of(trust)->check(read_asked(view(request, request_size)), read_told(view(reply, reply_size)),
                                  view(cubin, cubin_size), std::chrono::system_clock::now());
    return Object::share(Py_None);
  });
}

PyMethodDef functions[] = {
    {"check_reply", check_reply, METH_VARARGS,
     "check_reply(request, reply): raises an error unless the reply answers the request, both as the bytes "
     "of "
     "their messages; gives whether the answer will get better."},
    {"check_signed", check_signed, METH_VARARGS,
     "check_signed(trust, request, reply, cubin): raises an error unless a key of the file `trust` has "
     "signed "
     "the answer for its question. It refuses what is older than any client of the user has accepted."},
    {"decompress", decompress, METH_VARARGS,
     "decompress(frame, size): the content of a zstd frame, `size` bytes."},
    {"gpu", gpu, METH_VARARGS,
     "gpu(ordinal=-1): facts and driver of a GPU, -1: of the current one, as v1.DeviceFacts and "
     "v1.DriverVersion."},
    {"synchronized", synchronized, METH_VARARGS,
     "synchronized(ordinal=-1): waits for all that this process has launched on a GPU, and gives what it "
     "lends as v1.LentGpu; None without a primary context there."},
    {"triton_launcher", triton_launcher, METH_VARARGS,
     "triton_launcher(parameters, is_cooperative, is_dependent, scratch): launches a kernel of Triton as its "
     "own launcher does."},
    {"triton_load_binary", triton_load_binary, METH_VARARGS,
     "triton_load_binary(name, cubin, shared, device): the module, the function, its registers, its spilled "
     "registers and its most threads."},
    {"triton_device_properties", triton_device_properties, METH_VARARGS,
     "triton_device_properties(device): what Triton asks of a GPU."},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "cubind._core",
                          "The Python client's part in C++.",
                          -1,
                          functions,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace
}  // namespace cubind::python

extern "C" __attribute__((visibility("default"))) PyObject* PyInit__core() {  // NOLINT: CPython's name
  namespace python = cubind::python;
  return python::guarded([] {
    python::Object module = python::Object::take(PyModule_Create(&python::definition));
    python::add_kernel_types(module.get());
    python::add_launcher_type(module.get());
    python::add_triton_launcher_type(module.get());
    python::add_operator_types(module.get());
    if (PyModule_AddStringConstant(module.get(), "version", CUBIND_VERSION) != 0) {
      throw python::PythonError();
    }
    return module;
  });
}
