#include "python/extension/triton_launcher.hpp"

#include <array>
#include <span>

#include "launch/enqueue.hpp"
#include "python/extension/boxed.hpp"
#include "python/extension/triton_arguments.hpp"
#include "python/extension/triton_driver.hpp"

namespace cubind::python {
namespace {

constexpr unsigned kThreadsPerWarp = 32;
// Clusters above 8 blocks have to be allowed. Triton's are powers of two.
constexpr unsigned kNonPortableBlocks = 16;

constexpr std::size_t kAreas = TritonArguments::kAreas;

// Memory that a kernel needs, and what allocates it.
struct Scratch {
  long long bytes = 0;  // for each block of the grid
  long long alignment = 1;
  Object allocate;
};

struct TritonLauncher {
  std::vector<TritonParameter> parameters;
  bool is_cooperative = false;
  bool is_dependent = false;  // may start before the launch ahead of it ends
  std::vector<Scratch> scratch;
};

// What a launch gets before the kernel's own arguments.
enum Before : std::size_t { X, Y, Z, StreamHandle, FunctionHandle, Packed, Metadata, Enter, Exit, Count };

PyTypeObject* launcher_type = nullptr;

struct Cluster {
  unsigned blocks = 1;  // as Triton counts CTAs; 1: no cluster
  Dim3 size;
};

struct Shape {
  LaunchShape launch;
  Cluster cluster;
};

Shape shape_of(const Dim3& grid, PyObject* packed) {
  if (PyTuple_Check(packed) == 0 || (size_of(packed) != 3 && size_of(packed) != 6)) {
    raise(PyExc_TypeError, "kernel_metadata must be a tuple of 3 or 6 ints");
  }
  const auto item = [packed](Py_ssize_t i) {
    return static_cast<unsigned>(c_int(PyTuple_GetItem(packed, i)));
  };
  const unsigned warps = item(0), blocks = item(1), shared = item(2);
  Shape shape{{grid, {kThreadsPerWarp * warps, 1, 1}, shared}, {blocks, {blocks, 1, 1}}};
  if (blocks != 1) {
    Dim3& cluster = shape.cluster.size;
    if (size_of(packed) == 6) {
      cluster = {item(3), item(4), item(5)};
    }
    shape.launch.grid = {grid.x * cluster.x, grid.y * cluster.y, grid.z * cluster.z};
  }
  return shape;
}

struct Attributes {
  std::array<cuda::LaunchAttribute, 4> all;
  std::size_t count = 0;

  void add(cuda::LaunchAttributeId id, const Dim3& value) {
    all[count++] = {id, {value.x, value.y, value.z}};
  }
};

Attributes attributes_of(const TritonLauncher& launcher, const Cluster& cluster) {
  Attributes attributes;
  if (launcher.is_dependent) {
    attributes.add(cuda::LaunchAttributeId::ProgrammaticStreamSerialization, {1, 0, 0});
  }
  if (launcher.is_cooperative) {
    attributes.add(cuda::LaunchAttributeId::Cooperative, {1, 0, 0});
  }
  if (cluster.blocks != 1) {
    attributes.add(cuda::LaunchAttributeId::ClusterDimension, cluster.size);
    attributes.add(cuda::LaunchAttributeId::ClusterSchedulingPolicyPreference,
                   {cuda::kClusterSchedulingSpread, 0, 0});
  }
  return attributes;
}

cuda::Result enqueue(const cuda::DriverApi& driver, const TritonLauncher& launcher, const Shape& shape,
                     cuda::Function function, void** parameters, cuda::Stream stream) {
  if (shape.cluster.blocks == kNonPortableBlocks) {
    const cuda::Result result =
        driver.func_set_attribute(function, cuda::FunctionAttribute::NonPortableClusterSizeAllowed, 1);
    if (result != cuda::Result::Success) {
      return result;
    }
  }
  Attributes attributes = attributes_of(launcher, shape.cluster);
  return cubind::enqueue(driver, function, shape.launch, std::span(attributes.all).first(attributes.count),
                         parameters, stream);
}

void call_hook(PyObject* hook, PyObject* metadata) {
  if (hook != Py_None) {
    Object::take(PyObject_CallFunctionObjArgs(hook, metadata, nullptr));
  }
}

// One object for each area; None for one of no bytes.
std::array<Object, kAreas> allocate(const TritonLauncher& launcher, const std::array<int, 3>& grid,
                                    PyObject* stream) {
  std::array<Object, kAreas> areas;
  const long long blocks = static_cast<long long>(grid[0]) * grid[1] * grid[2];
  for (std::size_t i = 0; i < launcher.scratch.size(); ++i) {
    const Scratch& scratch = launcher.scratch[i];
    areas[i] = scratch.bytes == 0
                   ? Object::share(Py_None)
                   : Object::take(PyObject_CallFunction(scratch.allocate.get(), "LLO", blocks * scratch.bytes,
                                                        scratch.alignment, stream));
  }
  return areas;
}

void check_count(const TritonLauncher& launcher, std::size_t given) {
  const std::size_t expected = Before::Count + launcher.parameters.size();
  if (given != expected) {
    raise(PyExc_TypeError, "the launch takes " + std::to_string(expected) + " arguments, " +
                               std::to_string(given) + " were given");
  }
}

// The order of what can fail, and of the hooks, is Triton's.
void launch(const TritonLauncher& launcher, PyObject* const* given, std::size_t count) {
  check_count(launcher, count);
  const std::array grid{c_int(given[X]), c_int(given[Y]), c_int(given[Z])};
  const std::array<Object, kAreas> areas = allocate(launcher, grid, given[StreamHandle]);
  const cuda::DriverApi& driver = triton_driver();
  ensure_context(driver, 0);
  const auto stream = reinterpret_cast<cuda::Stream>(low_bits(given[StreamHandle]));        // NOLINT
  const auto function = reinterpret_cast<cuda::Function>(low_bits(given[FunctionHandle]));  // NOLINT
  TritonArguments arguments;
  arguments.read(launcher.parameters, given + Before::Count);
  const auto size = [&grid](std::size_t axis) { return static_cast<unsigned>(grid[axis]); };
  const Shape shape = shape_of({size(0), size(1), size(2)}, given[Packed]);
  call_hook(given[Enter], given[Metadata]);
  std::array<cuda::DevicePtr, kAreas> scratch{};
  for (std::size_t i = 0; i < launcher.scratch.size(); ++i) {
    scratch[i] = triton_pointer(driver, areas[i].get(), -1);
  }
  arguments.resolve_pointers(driver);
  for (std::size_t i = 0; i < launcher.scratch.size(); ++i) {
    arguments.add(scratch[i]);
  }
  if (grid[0] > 0 && grid[1] > 0 && grid[2] > 0) {
    cuda::Result result{};
    {
      const WithoutGil others_run;
      result = enqueue(driver, launcher, shape, function, arguments.parameters(), stream);
    }
    check_as_triton(driver, result);
  }
  call_hook(given[Exit], given[Metadata]);
}

PyObject* call(PyObject* self, PyObject* const* given, Py_ssize_t count) {
  return guarded([&] {
    launch(unbox<TritonLauncher>(self), given, static_cast<std::size_t>(count));
    return Object::share(Py_None);
  });
}

PyMethodDef call_definition = {"launch", as_method(call), METH_FASTCALL, "Launches the kernel."};
PyMethodDef no_methods[] = {{nullptr, nullptr, 0, nullptr}};

std::vector<Scratch> scratch_of(PyObject* areas) {
  if (size_of(areas) > kAreas) {
    raise(PyExc_ValueError, "at most " + std::to_string(kAreas) + " areas of scratch memory");
  }
  return each_of(areas, [](PyObject* area) {
    Scratch scratch;
    PyObject* allocate = nullptr;
    parse(area, "LLO", &scratch.bytes, &scratch.alignment, &allocate);
    scratch.allocate = Object::share(allocate);
    return scratch;
  });
}

}  // namespace

void add_triton_launcher_type(PyObject* module) {
  launcher_type = boxed_type<TritonLauncher>(module, "cubind._core.TritonLauncher", no_methods, nullptr,
                                             "Behind a launch of a kernel of Triton.");
}

PyObject* triton_launcher(PyObject*, PyObject* arguments) {
  return guarded([&] {
    PyObject *parameters = nullptr, *scratch = nullptr;
    int is_cooperative = 0, is_dependent = 0;
    parse(arguments, "OppO", &parameters, &is_cooperative, &is_dependent, &scratch);
    TritonLauncher launcher{triton_parameters(parameters), is_cooperative != 0, is_dependent != 0,
                            scratch_of(scratch)};
    if (const std::size_t count = flat_count(launcher.parameters); count > TritonArguments::kMost) {
      raise(PyExc_ValueError, std::to_string(count) + " arguments, at most " +
                                  std::to_string(TritonArguments::kMost) + " are packed");
    }
    return boxed_function(call_definition, launcher_type, std::move(launcher));
  });
}

}  // namespace cubind::python
