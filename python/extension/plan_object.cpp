#include "python/extension/plan_object.hpp"

#include <initializer_list>
#include <utility>
#include <vector>

namespace cubind::python {
namespace {

constexpr const char* kSources[] = {"buffer", "value", "caller", "symbol", "tensor_map"};
constexpr const char* kRoles[] = {"none", "in", "out", "inout", "zero", "scratch"};

template <typename Item, typename ToObject>
Object list_of(const std::vector<Item>& items, const ToObject& object_of) {
  Object list = Object::take(PyList_New(0));
  for (const Item& item : items) {
    if (PyList_Append(list.get(), object_of(item).get()) != 0) {
      throw PythonError();
    }
  }
  return list;
}

Object number(std::int64_t value) { return Object::take(PyLong_FromLongLong(value)); }
Object size(std::uint64_t value) { return Object::take(PyLong_FromUnsignedLongLong(value)); }

/// All plans share the keys.
void set(const Object& dict, std::initializer_list<std::pair<const char*, Object>> items) {
  for (const auto& [key, value] : items) {
    if (PyDict_SetItemString(dict.get(), key, value.get()) != 0) {
      throw PythonError();
    }
  }
}

Object tensor_map_object(const TensorMap& map) {
  Object object = Object::take(PyDict_New());
  const auto list = [](const TensorMap::Axes& axes, std::uint32_t count) {
    return list_of(std::vector(axes.begin(), axes.begin() + count), number);
  };
  set(object, {{"argument", text(map.argument)},
               {"type", text(to_string(map.type))},
               {"sizes", list(map.sizes, map.axes)},
               {"strides", list(map.strides, map.axes - 1)},
               {"box", list(map.box, map.axes)},
               {"element_strides", list(map.element_strides, map.axes)},
               {"swizzle", number(map.swizzle)},
               {"interleave", number(map.interleave)},
               {"l2_promotion", number(map.l2_promotion)},
               {"fill", text(map.nan_fill ? "nan" : "zeros")}});
  return object;
}

Object parameter_object(const Parameter& parameter) {
  Object object = Object::take(PyDict_New());
  set(object, {{"name", text(parameter.name)},
               {"source", text(name_of(parameter.source))},
               {"type", text(to_string(parameter.type))},
               {"role", text(name_of(parameter.role))},
               {"extent_bytes", size(parameter.extent_bytes)},
               {"align_bytes", size(parameter.align_bytes)},
               {"value", number(parameter.value)},
               {"shape", list_of(parameter.shape, number)}});
  if (parameter.source == ParameterSource::Symbol) {
    set(object, {{"variable", text(parameter.variable)}, {"symbol", text(parameter.symbol)}});
  } else if (parameter.source == ParameterSource::TensorMap) {
    set(object, {{"tensor_map", tensor_map_object(parameter.tensor_map)}});
  }
  return object;
}

Object dim3_object(const Dim3& dim) { return list_of(std::vector<std::uint64_t>{dim.x, dim.y, dim.z}, size); }

Object launch_object(const Launch& launch) {
  Object object = Object::take(PyDict_New());
  set(object, {{"entry", text(launch.entry)},
               {"entry_symbol", text(launch.entry_symbol)},
               {"grid", dim3_object(launch.grid)},
               {"block", dim3_object(launch.block)},
               {"shared_bytes", size(launch.shared_bytes)},
               {"parameters", list_of(launch.parameters, parameter_object)}});
  if (launch.cluster) {
    set(object, {{"cluster", dim3_object(*launch.cluster)}});
  }
  if (const LaunchAttributes& from = launch.attributes; from != LaunchAttributes{}) {
    Object attributes = Object::take(PyDict_New());
    set(attributes, {{"cooperative", Object::take(PyBool_FromLong(from.cooperative))},
                     {"programmatic_stream_serialization",
                      Object::take(PyBool_FromLong(from.programmatic_stream_serialization))},
                     {"priority", number(from.priority)}});
    set(object, {{"attributes", std::move(attributes)}});
  }
  return object;
}

}  // namespace

const char* name_of(ParameterSource source) { return kSources[static_cast<std::size_t>(source)]; }
const char* name_of(Role role) { return kRoles[static_cast<std::size_t>(role)]; }

Object plan_object(const LaunchPlan& plan) { return list_of(plan.launches, launch_object); }

}  // namespace cubind::python
