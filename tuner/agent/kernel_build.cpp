#include "tuner/agent/kernel_build.hpp"

#include "base/error.hpp"
#include "base/key_encoder.hpp"

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

ToolchainIdentity identity_of(const Toolchain& toolchain, const IncludeClosure& closure) {
  return {toolchain.name(), toolchain.nvrtc_digest, toolchain.builtins_digest, closure.toolkit_digest()};
}

CompileInput with_source(CompileInput input, const ArtifactSource& source) {
  v1::CompileRequest& request = input.request;
  for (const std::string& entry : source.entries) {
    request.add_entries(entry);
  }
  const auto& code = std::get<NvrtcSource>(source.code);
  for (const std::string& option : code.options) {
    request.add_options(option);
  }
  for (const std::string& define : code.defines) {
    request.add_defines(define);
  }
  request.set_architecture(source.architecture);
  return input;
}

}  // namespace

KernelBuild::KernelBuild(std::shared_ptr<const KernelSpec> spec, const Toolchain& toolchain,
                         ToolkitHeaders& headers)
    : spec_(std::move(spec)) {
  if (spec_->triton) {
    throw Error(ErrorCode::Unimplemented, spec_->name, "this agent compiles no Triton kernels yet");
  }
  IncludeSearch search = include_search(*spec_);
  search.toolkit = &headers;
  kernel_ = files_of(spec_->source, search, toolchain);
  if (spec_->reference.kind == ReferenceSpec::Kind::Kernel) {
    search.macros.clear();
    reference_ = files_of(spec_->reference.source, search, toolchain);
  }
}

KernelBuild::Files KernelBuild::files_of(const std::string& source, const IncludeSearch& search,
                                         const Toolchain& toolchain) {
  const IncludeClosure closure = include_closure(source, search);
  Files files{.identity = identity_of(toolchain, closure), .input = {{}, headers_of(closure)}};
  files.input.request.set_source_name(closure.source.name);
  files.input.request.set_source(closure.source.content);
  return files;
}

CompileInput KernelBuild::request(const ArtifactSource& source) const {
  return with_source(kernel_.input, source);
}

CompileInput KernelBuild::reference_request(const ArtifactSource& source) const {
  return with_source(reference_.input, source);
}

}  // namespace cubind
