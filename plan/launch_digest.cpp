#include "plan/launch_digest.hpp"

#include "base/key_encoder.hpp"

namespace cubind {
namespace {

void put(KeyEncoder& key, std::string_view tag, const std::vector<std::string>& texts) {
  key.list(tag, texts.size());
  for (const std::string& text : texts) {
    key.field("text", text);
  }
}

void put(KeyEncoder& key, const ParameterTemplate& parameter) {
  key.begin("parameter")
      .field("name", parameter.name)
      .field("source", static_cast<int>(parameter.source))
      .field("type", to_string(parameter.type))
      .field("role", static_cast<int>(parameter.role))
      .field("extent", parameter.extent)
      .field("align", parameter.align_bytes)
      .field("value", parameter.value);
  put(key, "shape", parameter.shape);
  key.field("variable", parameter.variable).field("symbol", parameter.symbol);
  if (parameter.source == ParameterSource::TensorMap) {
    put_tensor_map(key, parameter.tensor_map);
  }
  key.end();
}

void put(KeyEncoder& key, const LaunchTemplate& launch) {
  key.begin("launch").field("entry", launch.entry).field("symbol", launch.entry_symbol);
  put(key, "grid", launch.grid);
  put(key, "block", launch.block);
  key.field("shared", launch.shared_bytes).list("parameters", launch.parameters.size());
  for (const ParameterTemplate& parameter : launch.parameters) {
    put(key, parameter);
  }
  if (!launch.cluster.empty()) {
    put(key, "cluster", launch.cluster);
  }
  put_attributes(key, launch.attributes);
  key.end();
}

}  // namespace

void put_tensor_map(KeyEncoder& key, const TensorMapTemplate& map) {
  key.begin("tensor_map")
      .field("argument", map.argument)
      .field("type", to_string(map.type))
      .field("nan_fill", map.nan_fill);
  for (const auto& [tag, list] : kTensorMapLists) {
    put(key, tag, map.*list);
  }
  key.end();
}

void put_attributes(KeyEncoder& key, const LaunchAttributes& attributes) {
  if (attributes != LaunchAttributes{}) {
    key.begin("attributes")
        .field("cooperative", attributes.cooperative)
        .field("programmatic_stream_serialization", attributes.programmatic_stream_serialization)
        .field("priority", attributes.priority)
        .end();
  }
}

Digest launch_digest(const PlanTemplate& plan) {
  KeyEncoder key("launches", 1);
  put(key, "constraints", plan.constraints);
  key.field("static_shared", plan.static_shared_bytes).list("launches", plan.launches.size());
  for (const LaunchTemplate& launch : plan.launches) {
    put(key, launch);
  }
  return key.digest();
}

}  // namespace cubind
