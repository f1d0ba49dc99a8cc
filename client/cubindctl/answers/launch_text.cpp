#include "client/cubindctl/answers/launch_text.hpp"

namespace cubind::ctl {
namespace {

std::string dim_text(const Dim3& dim) {
  return std::to_string(dim.x) + "x" + std::to_string(dim.y) + "x" + std::to_string(dim.z);
}

}  // namespace

std::string launch_text(const Launch& launch) {
  return launch.entry + " grid " + dim_text(launch.grid) + " block " + dim_text(launch.block) +
         (launch.cluster ? " cluster " + dim_text(*launch.cluster) : "") +
         (launch.attributes.cooperative ? " cooperative" : "") +
         (launch.attributes.programmatic_stream_serialization ? " dependent" : "") + " shared " +
         std::to_string(launch.shared_bytes) + " B";
}

std::vector<std::string> tensor_map_texts(const Launch& launch) {
  std::vector<std::string> texts;
  for (const Parameter& parameter : launch.parameters) {
    if (parameter.source == ParameterSource::TensorMap) {
      texts.push_back(parameter.tensor_map.argument + " of " + parameter.name + ": " +
                      to_string(parameter.tensor_map));
    }
  }
  return texts;
}

}  // namespace cubind::ctl
