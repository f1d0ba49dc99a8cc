#include "tuner/agent/kernel_build.hpp"

namespace cubind {
namespace {

IncludeClosure closure_of(const KernelSpec& spec, const std::string& source, const Toolchain& toolchain) {
  IncludeSearch search;
  search.own = [&spec](const std::string& path) -> std::optional<std::string> {
    const SourceFile* file = spec.bundled_file(path);
    return file == nullptr ? std::nullopt : std::optional(file->content);
  };
  search.header_folders = spec.headers;
  search.toolkit = [&toolchain](const std::string& name) { return toolchain.read_header(name); };
  return include_closure(source, search);
}

v1::CompileRequest files_of(const IncludeClosure& closure) {
  v1::CompileRequest request;
  request.set_source_name(closure.source.name);
  request.set_source(closure.source.content);
  for (const auto* files : {&closure.own, &closure.toolkit}) {
    for (const CompilerFile& file : *files) {
      v1::SourceFile& header = *request.add_headers();
      header.set_path(file.name);
      header.set_content(file.content);
    }
  }
  return request;
}

ToolchainIdentity identity_of(const Toolchain& toolchain, const IncludeClosure& closure) {
  return {toolchain.name(), toolchain.nvrtc_digest, toolchain.builtins_digest, closure.toolkit_digest()};
}

v1::CompileRequest with_source(v1::CompileRequest request, const ArtifactSource& source) {
  for (const std::string& entry : source.entries) {
    request.add_entries(entry);
  }
  for (const std::string& option : source.options) {
    request.add_options(option);
  }
  for (const std::string& define : source.defines) {
    request.add_defines(define);
  }
  request.set_architecture(source.architecture);
  return request;
}

}  // namespace

KernelBuild::KernelBuild(std::shared_ptr<const KernelSpec> spec, const Toolchain& toolchain)
    : spec_(std::move(spec)) {
  const IncludeClosure closure = closure_of(*spec_, spec_->source, toolchain);
  identity_ = identity_of(toolchain, closure);
  kernel_files_ = files_of(closure);
  if (spec_->reference.kind == ReferenceSpec::Kind::Kernel) {
    const IncludeClosure reference = closure_of(*spec_, spec_->reference.source, toolchain);
    reference_identity_ = identity_of(toolchain, reference);
    reference_files_ = files_of(reference);
  }
}

v1::CompileRequest KernelBuild::request(const ArtifactSource& source) const {
  return with_source(kernel_files_, source);
}

v1::CompileRequest KernelBuild::reference_request(const ArtifactSource& source) const {
  return with_source(reference_files_, source);
}

}  // namespace cubind
