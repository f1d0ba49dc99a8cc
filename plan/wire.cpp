#include "plan/wire.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/refuse.hpp"
#include "base/text.hpp"
#include "plan/wire_fields.hpp"

namespace cubind {
namespace {

using WireValues = google::protobuf::RepeatedPtrField<v1::NamedValue>;

void values_to_wire(const std::vector<NamedValue>& from, WireValues& to) {
  to.Clear();
  for (const NamedValue& value : from) {
    v1::NamedValue& added = *to.Add();
    added.set_name(value.name);
    added.set_value(value.value);
  }
}

std::vector<NamedValue> values_from_wire(const WireValues& from, std::string_view field,
                                         std::string_view name) {
  std::vector<NamedValue> values;
  for (int i = 0; i < from.size(); ++i) {
    if (from[i].name().empty()) {
      refuse(element_field(field, name, i) + ".name", "must not be empty");
    }
    for (const NamedValue& earlier : values) {
      if (earlier.name == from[i].name()) {
        refuse(element_field(field, name, i) + ".name", quoted(earlier.name) + " is given twice");
      }
    }
    values.push_back({from[i].name(), from[i].value()});
  }
  return values;
}

// The enumerators have the numbers of the messages.
static_assert(static_cast<int>(Role::None) == v1::ROLE_NONE && static_cast<int>(Role::In) == v1::IN &&
              static_cast<int>(Role::Out) == v1::OUT && static_cast<int>(Role::InOut) == v1::INOUT &&
              static_cast<int>(Role::Zero) == v1::ZERO && static_cast<int>(Role::Scratch) == v1::SCRATCH);
static_assert(static_cast<int>(ParameterSource::Buffer) == v1::Parameter::BUFFER);
static_assert(static_cast<int>(ParameterSource::Value) == v1::Parameter::VALUE);
static_assert(static_cast<int>(ParameterSource::Caller) == v1::Parameter::CALLER);
static_assert(static_cast<int>(ParameterSource::Symbol) == v1::Parameter::SYMBOL);
static_assert(static_cast<int>(ParameterSource::TensorMap) == v1::Parameter::TENSOR_MAP);

Role role_from_wire(v1::Role role, const std::string& field) {
  if (!v1::Role_IsValid(role)) {
    refuse_unknown(field, "role", role);
  }
  return static_cast<Role>(role);
}

v1::Parameter::Source source_to_wire(ParameterSource source) {
  return static_cast<v1::Parameter::Source>(source);
}

ParameterSource source_from_wire(v1::Parameter::Source source, const std::string& field) {
  if (!v1::Parameter::Source_IsValid(source)) {
    refuse_unknown(field, "source", source);
  }
  return static_cast<ParameterSource>(source);
}

void dim3_to_wire(const Dim3& from, v1::Dim3& to) {
  to.set_x(from.x);
  to.set_y(from.y);
  to.set_z(from.z);
}

// A missing axis is 1, as in CUDA.
Dim3 dim3_from_wire(const v1::Dim3& from) {
  const auto axis = [](std::uint32_t value) { return value == 0 ? 1u : value; };
  return {axis(from.x()), axis(from.y()), axis(from.z())};
}

DType scalar_type_from_wire(std::string_view from, std::string_view field) {
  const auto type = parse_scalar_type(from);
  return type ? *type : dtype_from_wire(from, field);
}

void tensor_map_to_wire(const TensorMap& from, v1::TensorMap& to) {
  to.set_argument(from.argument);
  to.set_type(static_cast<std::uint32_t>(from.type));
  to.set_nan_fill(from.nan_fill);
  const auto add = [&](const TensorMap::Axes& axes, auto& list, std::uint32_t count) {
    list.Assign(axes.begin(), axes.begin() + count);
  };
  add(from.sizes, *to.mutable_sizes(), from.axes);
  add(from.strides, *to.mutable_strides(), from.axes - 1);
  add(from.box, *to.mutable_box(), from.axes);
  add(from.element_strides, *to.mutable_element_strides(), from.axes);
  for (const std::int64_t mode : {from.swizzle, from.interleave, from.l2_promotion}) {
    to.add_modes(mode);
  }
}

TensorMap tensor_map_from_wire(const v1::TensorMap& from, const std::string& field) {
  TensorMap to{from.argument(), TensorMapType(from.type()), from.nan_fill(),
               static_cast<std::uint32_t>(from.sizes_size())};
  if (from.type() > static_cast<std::uint32_t>(TensorMapType::Tf32Ftz) || to.axes < 1 ||
      to.axes > kMaxTensorMapAxes || from.modes_size() != 3) {
    refuse(field, "is no tensor map");
  }
  const auto take = [&](const auto& list, TensorMap::Axes& axes, std::uint32_t count) {
    if (static_cast<std::uint32_t>(list.size()) != count) {
      refuse(field,
             "a list has " + std::to_string(list.size()) + " numbers, expected " + std::to_string(count));
    }
    std::ranges::copy(list, axes.begin());
  };
  take(from.sizes(), to.sizes, to.axes);
  take(from.strides(), to.strides, to.axes - 1);
  take(from.box(), to.box, to.axes);
  take(from.element_strides(), to.element_strides, to.axes);
  to.swizzle = from.modes(0);
  to.interleave = from.modes(1);
  to.l2_promotion = from.modes(2);
  return to;
}

Parameter parameter_from_wire(const v1::Parameter& from, const std::string& field) {
  Parameter to;
  to.name = from.name();
  to.source = source_from_wire(from.source(), field + ".source");
  to.type = scalar_type_from_wire(from.type(), field + ".type");
  to.role = role_from_wire(from.role(), field + ".role");
  to.extent_bytes = from.extent_bytes();
  to.align_bytes = from.align_bytes();
  to.value = from.value();
  to.shape.assign(from.shape().begin(), from.shape().end());
  to.variable = from.variable();
  to.symbol = from.symbol();
  if (to.source == ParameterSource::TensorMap) {
    to.tensor_map = tensor_map_from_wire(from.tensor_map(), field + ".tensor_map");
  }
  return to;
}

void parameter_to_wire(const Parameter& from, v1::Parameter& to) {
  to.set_name(from.name);
  to.set_source(source_to_wire(from.source));
  to.set_type(std::string(to_string(from.type)));
  to.set_role(to_wire(from.role));
  to.set_extent_bytes(from.extent_bytes);
  to.set_align_bytes(from.align_bytes);
  to.set_value(from.value);
  to.mutable_shape()->Assign(from.shape.begin(), from.shape.end());
  to.set_variable(from.variable);
  to.set_symbol(from.symbol);
  if (from.source == ParameterSource::TensorMap) {
    tensor_map_to_wire(from.tensor_map, *to.mutable_tensor_map());
  }
}

void parameter_template_to_wire(const ParameterTemplate& from, v1::ParameterTemplate& to) {
  to.set_name(from.name);
  to.set_source(source_to_wire(from.source));
  to.set_type(std::string(to_string(from.type)));
  to.set_role(to_wire(from.role));
  to.set_extent(from.extent);
  to.set_align_bytes(from.align_bytes);
  to.set_value(from.value);
  to.mutable_shape()->Assign(from.shape.begin(), from.shape.end());
  to.set_variable(from.variable);
  to.set_symbol(from.symbol);
  if (from.source == ParameterSource::TensorMap) {
    const TensorMapTemplate& map = from.tensor_map;
    v1::TensorMapTemplate& added = *to.mutable_tensor_map();
    added.set_argument(map.argument);
    added.set_type(static_cast<std::uint32_t>(map.type));
    added.set_nan_fill(map.nan_fill);
    added.mutable_sizes()->Assign(map.sizes.begin(), map.sizes.end());
    added.mutable_strides()->Assign(map.strides.begin(), map.strides.end());
    added.mutable_box()->Assign(map.box.begin(), map.box.end());
    added.mutable_element_strides()->Assign(map.element_strides.begin(), map.element_strides.end());
    added.mutable_modes()->Assign(map.modes.begin(), map.modes.end());
  }
}

void attributes_to_wire(const LaunchAttributes& from, v1::LaunchAttributes& to) {
  to.set_cooperative(from.cooperative);
  to.set_programmatic_stream_serialization(from.programmatic_stream_serialization);
  to.set_priority(from.priority);
}

}  // namespace

DType dtype_from_wire(std::string_view from, std::string_view field) {
  if (const auto type = parse_dtype(from)) {
    return *type;
  }
  refuse(std::string(field), quoted(from) + " is not a type" + dtype_suggestion(from));
}

v1::Role to_wire(Role role) { return static_cast<v1::Role>(role); }

void to_wire(const Problem& from, v1::Problem& to) {
  to.Clear();
  values_to_wire(from.dims, *to.mutable_dims());
  for (const TypeBinding& type : from.types) {
    v1::TypeBinding& added = *to.add_types();
    added.set_name(type.name);
    added.set_type(std::string(to_string(type.type)));
  }
  values_to_wire(from.flags, *to.mutable_flags());
  to.set_scenario(from.scenario);
}

Problem problem_from_wire(const v1::Problem& from, std::string_view field) {
  Problem to;
  to.dims = values_from_wire(from.dims(), field, "dims");
  for (int i = 0; i < from.types_size(); ++i) {
    const std::string where = element_field(field, "types", i);
    const v1::TypeBinding& type = from.types(i);
    if (type.name().empty()) {
      refuse(where + ".name", "must not be empty");
    }
    if (to.type(type.name())) {
      refuse(where + ".name", quoted(type.name()) + " is given twice");
    }
    to.types.push_back({type.name(), dtype_from_wire(type.type(), where + ".type")});
  }
  to.flags = values_from_wire(from.flags(), field, "flags");
  to.scenario = from.scenario();
  return to;
}

void to_wire(const Configuration& from, v1::Configuration& to) {
  values_to_wire(from.values, *to.mutable_values());
}

Configuration configuration_from_wire(const v1::Configuration& from, std::string_view field) {
  return {values_from_wire(from.values(), field, "values")};
}

void to_wire(const LaunchPlan& from, v1::LaunchPlan& to) {
  to.Clear();
  for (const Launch& launch : from.launches) {
    v1::Launch& added = *to.add_launches();
    added.set_entry(launch.entry);
    added.set_entry_symbol(launch.entry_symbol);
    dim3_to_wire(launch.grid, *added.mutable_grid());
    dim3_to_wire(launch.block, *added.mutable_block());
    added.set_shared_bytes(launch.shared_bytes);
    if (launch.cluster) {
      dim3_to_wire(*launch.cluster, *added.mutable_cluster());
    }
    if (launch.attributes != LaunchAttributes{}) {
      attributes_to_wire(launch.attributes, *added.mutable_attributes());
    }
    for (const Parameter& parameter : launch.parameters) {
      parameter_to_wire(parameter, *added.add_parameters());
    }
  }
}

LaunchPlan plan_from_wire(const v1::LaunchPlan& from, std::string_view field) {
  LaunchPlan to;
  for (int i = 0; i < from.launches_size(); ++i) {
    const v1::Launch& launch = from.launches(i);
    const std::string where = element_field(field, "launches", i);
    Launch added{launch.entry(),
                 launch.entry_symbol(),
                 dim3_from_wire(launch.grid()),
                 dim3_from_wire(launch.block()),
                 launch.shared_bytes(),
                 {}};
    if (launch.has_cluster()) {
      added.cluster = dim3_from_wire(launch.cluster());
    }
    const v1::LaunchAttributes& attributes = launch.attributes();
    added.attributes = {attributes.cooperative(), attributes.programmatic_stream_serialization(),
                        attributes.priority()};
    for (int p = 0; p < launch.parameters_size(); ++p) {
      added.parameters.push_back(
          parameter_from_wire(launch.parameters(p), element_field(where, "parameters", p)));
    }
    to.launches.push_back(std::move(added));
  }
  return to;
}

void to_wire(const LaunchTemplate& from, v1::LaunchTemplate& to) {
  to.Clear();
  to.set_entry(from.entry);
  to.set_entry_symbol(from.entry_symbol);
  to.mutable_grid()->Assign(from.grid.begin(), from.grid.end());
  to.mutable_block()->Assign(from.block.begin(), from.block.end());
  to.set_shared_bytes(from.shared_bytes);
  to.mutable_cluster()->Assign(from.cluster.begin(), from.cluster.end());
  if (from.attributes != LaunchAttributes{}) {
    attributes_to_wire(from.attributes, *to.mutable_attributes());
  }
  for (const ParameterTemplate& parameter : from.parameters) {
    parameter_template_to_wire(parameter, *to.add_parameters());
  }
}

void to_wire(const PlanTemplate& from, const DeviceConstants& device, v1::Rule& to) {
  to.mutable_constraints()->Assign(from.constraints.begin(), from.constraints.end());
  to.clear_launches();
  for (const LaunchTemplate& launch : from.launches) {
    to_wire(launch, *to.add_launches());
  }
  to_wire(device, *to.mutable_device_constants());
  to.set_max_threads_per_block(kMaxThreadsPerBlock);
  to.set_max_shared_bytes(static_cast<std::uint64_t>(device.shared_optin));
  to.set_static_shared_bytes(from.static_shared_bytes);
}

void to_wire(const DeviceConstants& from, DeviceConstantsWire& to) {
  to.Clear();
  for (const auto& [name, value] : kDeviceConstants) {
    v1::NamedValue& added = *to.Add();
    added.set_name(name);
    added.set_value(from.*value);
  }
}

DeviceConstants device_constants_from_wire(const DeviceConstantsWire& from, std::string_view field) {
  return device_constants_of(values_from_wire(from, field, "device_constants"),
                             member_field(field, "device_constants"));
}

}  // namespace cubind
