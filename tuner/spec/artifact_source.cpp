// The code that a cubin is compiled from, and what compiles it.
#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "tuner/includes/nvrtc_options.hpp"
#include "tuner/spec/keys.hpp"
#include "tuner/spec/placeholders.hpp"
#include "tuner/spec/substitution.hpp"

namespace cubind {
namespace {

// A reference stays exact, even if the kernel's options trade accuracy for speed.
bool changes_results(const std::string& option) {
  constexpr std::string_view kOptions[] = {
      "--use_fast_math", "--fmad", "--ftz", "--prec-div", "--prec-sqrt", "--ptxas-options", "--maxrregcount"};
  return std::ranges::find(kOptions, option.substr(0, option.find('='))) != std::end(kOptions);
}

void sort_and_unite(std::vector<std::string>& texts) {
  std::ranges::sort(texts);
  const auto doubled = std::ranges::unique(texts);
  texts.erase(doubled.begin(), doubled.end());
}

std::string macro_name(const std::string& define) { return define.substr(0, define.find('=')); }

// Behind the spec's own macros, which win.
void add_nvcc_defines(NvrtcSource& code) {
  for (std::string& define : nvcc_defines(code.options)) {
    if (std::ranges::find(code.defines, macro_name(define), macro_name) == code.defines.end()) {
      code.defines.push_back(std::move(define));
    }
  }
}

NvrtcSource nvrtc_source(const KernelSpec& spec, const Problem& problem, const Configuration& configuration) {
  NvrtcSource code{spec.source_digests.source, spec.source_digests.includes, {}, {}};
  for (const std::string& define : spec.defines) {
    code.defines.push_back(substitute(define, problem, configuration));
  }
  for (const std::string& option : spec.options) {
    code.options.push_back(substitute(option, problem, configuration));
  }
  sort_and_unite(code.options);
  add_nvcc_defines(code);
  return code;
}

TritonSource triton_source(const KernelSpec& spec, const Configuration& configuration) {
  const TritonVariant& variant = spec.triton_variant(configuration);
  return {variant.ttir, variant.options};
}

}  // namespace

ArtifactSource artifact_source(const KernelSpec& spec, const Problem& problem,
                               const Configuration& configuration, const std::string& architecture) {
  ArtifactSource result{{}, name_expressions(spec, spec.launches, problem, configuration), architecture};
  if (spec.triton) {
    result.code = triton_source(spec, configuration);
  } else {
    result.code = nvrtc_source(spec, problem, configuration);
  }
  return result;
}

ArtifactSource reference_artifact_source(const KernelSpec& spec, const Problem& problem,
                                         const std::string& architecture) {
  NvrtcSource code{spec.reference_digests.source, spec.reference_digests.includes, {}, {}};
  std::ranges::remove_copy_if(spec.options, std::back_inserter(code.options), [](const std::string& option) {
    return changes_results(option) || has_placeholders(option);
  });
  add_nvcc_defines(code);
  return {std::move(code), name_expressions(spec, spec.reference.launches, problem, {}), architecture};
}

ToolchainIdentity triton_identity(const TritonTarget& target) {
  return {target.name(), Digest::of(target.name()), Digest::of("ptxas " + target.ptxas), {}};
}

std::uint32_t toolchain_major(const ToolchainIdentity& toolchain) {
  const std::string_view name = toolchain.name;
  const auto start = name.find_first_of("0123456789");
  if (start == std::string_view::npos) {
    return 0;
  }
  std::uint32_t major = 0;
  std::from_chars(name.data() + start, name.data() + name.size(), major);
  return major;
}

}  // namespace cubind
