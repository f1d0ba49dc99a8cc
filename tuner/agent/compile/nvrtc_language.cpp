#include <utility>

#include "base/key_encoder.hpp"
#include "plan/answer_wire.hpp"
#include "tuner/agent/compile/kernel_language.hpp"
#include "tuner/includes/include_closure.hpp"
#include "tuner/spec/device_class.hpp"

namespace cubind {
namespace {

// Null: there are none.
std::shared_ptr<const SharedHeaders> headers_of(const IncludeClosure& closure) {
  SharedHeaders headers;
  for (const CompilerFile& file : closure.own) {
    headers.files.push_back(std::make_shared<const CompilerFile>(file));
  }
  headers.files.insert(headers.files.end(), closure.toolkit.begin(), closure.toolkit.end());
  if (headers.files.empty()) {
    return nullptr;
  }
  KeyEncoder key("header_set", 1);
  for (const SharedFile& file : headers.files) {
    key.field(file->name, file->digest);
  }
  headers.digest = key.digest();
  return std::make_shared<const SharedHeaders>(std::move(headers));
}

v1::Toolchain offer_of(const Toolchain& toolchain, v1::Toolchain offer) {
  offer.set_name(toolchain.name());
  offer.set_major(toolchain.major);
  offer.set_minor(toolchain.minor);
  offer.set_nvrtc_digest(bytes_of(toolchain.nvrtc_digest));
  offer.set_builtins_digest(bytes_of(toolchain.builtins_digest));
  return offer;
}

class NvrtcLanguage final : public KernelLanguage {
 public:
  NvrtcLanguage(Toolchain toolchain, v1::Toolchain told)
      : toolchain_(std::move(toolchain)),
        offer_(offer_of(toolchain_, std::move(told))),
        headers_([this](const std::string& name) { return toolchain_.read_header(name); },
                 [this](const std::string& folder) { return toolchain_.headers_below(folder); }) {}

  const v1::Toolchain& offer() const override { return offer_; }
  bool is_triton() const override { return false; }

  bool compiles(const WantedCompiler& wanted) const override {
    const std::vector<std::string> known(offer_.architectures().begin(), offer_.architectures().end());
    return !wanted.triton &&
           (wanted.driver_cuda == 0 || driver_loads(wanted.driver_cuda, toolchain_.major)) &&
           (wanted.architecture.empty() || knows_architecture(known, wanted.architecture));
  }

  KernelBuild build(std::shared_ptr<const KernelSpec> spec) override {
    IncludeSearch search = include_search(*spec);
    search.toolkit = &headers_;
    KernelBuild::Part kernel = part_of(spec->source, search), reference;
    if (spec->reference.kind == ReferenceSpec::Kind::Kernel) {
      search.macros.clear();
      reference = part_of(spec->reference.source, search);
    }
    return {std::move(spec), std::move(kernel), std::move(reference)};
  }

 private:
  KernelBuild::Part part_of(const std::string& source, const IncludeSearch& search) const {
    const IncludeClosure closure = include_closure(source, search);
    KernelBuild::Part part{.identity = {toolchain_.name(), toolchain_.nvrtc_digest,
                                        toolchain_.builtins_digest, closure.toolkit_digest()},
                           .input = {{}, headers_of(closure)}};
    part.input.request.set_source_name(closure.source.name);
    part.input.request.set_source(closure.source.content);
    return part;
  }

  const Toolchain toolchain_;
  const v1::Toolchain offer_;
  ToolkitHeaders headers_;  // of toolchain_
};

}  // namespace

std::unique_ptr<KernelLanguage> nvrtc_language(Toolchain toolchain, v1::Toolchain told) {
  return std::make_unique<NvrtcLanguage>(std::move(toolchain), std::move(told));
}

}  // namespace cubind
