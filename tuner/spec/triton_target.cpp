#include "tuner/spec/triton_target.hpp"

#include "tuner/includes/nvrtc_options.hpp"
#include "tuner/spec/spec_sections.hpp"

namespace cubind {

bool is_triton_document(const JsonNode& root) {
  const auto language = root.find("language");
  return language && language->as_choice({"cuda", "triton"}) == 1;
}

TritonTarget read_triton_target(const JsonNode& node) {
  TritonTarget target{node.at("version").as_nonempty_string(), node.at("ptxas").as_nonempty_string(),
                      node.at("architecture").as_string()};
  check_architecture(target.architecture, node.at("architecture").where());
  return target;
}

std::optional<TritonTarget> triton_target(const std::string& spec_json, const std::string& file) {
  const OrderedJson document = parse_json_strict(spec_json, file, kSpecJsonLimits);
  const JsonNode root(document, file);
  return is_triton_document(root) ? std::optional(read_triton_target(root.at("triton"))) : std::nullopt;
}

}  // namespace cubind
