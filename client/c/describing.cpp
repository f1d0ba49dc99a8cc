// cubind.h: what a variant says.
#include "client/c/calling.hpp"
#include "client/c/handles.hpp"
#include "schemas/cubind.pb.h"

namespace cubind::c {

static_assert(CUBIND_BUFFER == static_cast<int>(ParameterSource::Buffer) &&
              CUBIND_VALUE == static_cast<int>(ParameterSource::Value) &&
              CUBIND_SCALAR == static_cast<int>(ParameterSource::Caller) &&
              CUBIND_SYMBOL == static_cast<int>(ParameterSource::Symbol) &&
              CUBIND_TENSOR_MAP == static_cast<int>(ParameterSource::TensorMap));
static_assert(CUBIND_ROLE_NONE == static_cast<int>(Role::None) &&
              CUBIND_ROLE_IN == static_cast<int>(Role::In) &&
              CUBIND_ROLE_OUT == static_cast<int>(Role::Out) &&
              CUBIND_ROLE_INOUT == static_cast<int>(Role::InOut) &&
              CUBIND_ROLE_ZERO == static_cast<int>(Role::Zero) &&
              CUBIND_ROLE_SCRATCH == static_cast<int>(Role::Scratch));

cubind_parameter described(const Parameter& parameter) {
  cubind_parameter info{};
  info.name = parameter.name.c_str();
  info.type = to_string(parameter.type).data();  // of a literal
  info.source = static_cast<std::int32_t>(parameter.source);
  info.role = static_cast<std::int32_t>(parameter.role);
  info.extent_bytes = parameter.extent_bytes;
  info.align_bytes = parameter.align_bytes;
  info.value = parameter.value;
  info.symbol = parameter.symbol.empty() ? nullptr : parameter.symbol.c_str();
  return info;
}

namespace {

const Launch& launch_of(const cubind_variant* variant, std::size_t index) {
  const std::vector<Launch>& launches = given(variant, "variant").answer.plan().launches;
  check_index(index, launches.size(), "launch");
  return launches[index];
}

void copy_dim(const Dim3& from, std::uint32_t (&to)[3]) {
  to[0] = from.x;
  to[1] = from.y;
  to[2] = from.z;
}

}  // namespace
}  // namespace cubind::c

using namespace cubind::c;  // NOLINT(google-build-using-namespace): the functions below have C's names

const char* cubind_variant_problem(const cubind_variant* variant) {
  return gotten([&] { return given(variant, "variant").problem.c_str(); });
}

const char* cubind_variant_configuration(const cubind_variant* variant) {
  return gotten([&] { return given(variant, "variant").configuration.c_str(); });
}

const char* cubind_variant_match(const cubind_variant* variant) {
  return gotten([&] { return given(variant, "variant").match.c_str(); });
}

const char* cubind_variant_evidence(const cubind_variant* variant) {
  return gotten(
      [&] { return to_string(given(variant, "variant").answer.evidence()).data(); });  // of a literal
}

double cubind_variant_time_us(const cubind_variant* variant) {
  return gotten([&] {
    const cubind::v1::Provenance& provenance = given(variant, "variant").answer.reply().provenance();
    return provenance.timing().samples() > 0 ? provenance.timing().median_us() : 0.0;
  });
}

const void* cubind_variant_cubin(const cubind_variant* variant, size_t* size) {
  return gotten([&] {
    const std::string& cubin = given(variant, "variant").answer.cubin();
    if (size != nullptr) {
      *size = cubin.size();
    }
    return cubin.data();
  });
}

size_t cubind_variant_launches(const cubind_variant* variant) {
  return gotten([&] { return given(variant, "variant").answer.plan().launches.size(); });
}

cubind_code cubind_variant_launch(const cubind_variant* variant, size_t launch, cubind_launch_info* info) {
  return guarded([&] {
    const cubind::Launch& from = launch_of(variant, launch);
    cubind_launch_info to{};
    to.symbol = from.entry_symbol.c_str();
    copy_dim(from.grid, to.grid);
    copy_dim(from.block, to.block);
    to.shared_bytes = from.shared_bytes;
    to.parameters = from.parameters.size();
    if (from.cluster) {
      copy_dim(*from.cluster, to.cluster);
    }
    to.cooperative = from.attributes.cooperative;
    to.programmatic_stream_serialization = from.attributes.programmatic_stream_serialization;
    to.priority = from.attributes.priority;
    write_known(info, to, "info");
  });
}

cubind_code cubind_variant_parameter(const cubind_variant* variant, size_t launch, size_t parameter,
                                     cubind_parameter* info) {
  return guarded([&] {
    const std::vector<cubind::Parameter>& parameters = launch_of(variant, launch).parameters;
    check_index(parameter, parameters.size(), "parameter");
    write_known(info, described(parameters[parameter]), "info");
  });
}
