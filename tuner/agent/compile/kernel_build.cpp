#include "tuner/agent/compile/kernel_build.hpp"

#include <utility>

#include "base/error.hpp"

namespace cubind {
namespace {

void put_code(const NvrtcSource& code, const KernelSpec&, v1::CompileRequest& request) {
  request.mutable_options()->Assign(code.options.begin(), code.options.end());
  request.mutable_defines()->Assign(code.defines.begin(), code.defines.end());
}

void put_code(const TritonSource& code, const KernelSpec& spec, v1::CompileRequest& request) {
  const SourceFile* file = spec.bundled_file(ttir_path(code.ttir));
  if (file == nullptr) {
    throw Error(ErrorCode::Internal, spec.file, "its bundle lacks " + ttir_path(code.ttir));
  }
  v1::TritonCode& triton = *request.mutable_triton();
  triton.set_ttir(file->content);
  triton.set_options(code.options);
  triton.set_version(spec.triton->version);
}

CompileInput with_source(CompileInput input, const ArtifactSource& source, const KernelSpec& spec) {
  v1::CompileRequest& request = input.request;
  request.mutable_entries()->Assign(source.entries.begin(), source.entries.end());
  std::visit([&](const auto& code) { put_code(code, spec, request); }, source.code);
  request.set_architecture(source.architecture);
  return input;
}

}  // namespace

KernelBuild::KernelBuild(std::shared_ptr<const KernelSpec> spec, Part kernel, Part reference)
    : spec_(std::move(spec)), kernel_(std::move(kernel)), reference_(std::move(reference)) {}

CompileInput KernelBuild::request(const ArtifactSource& source) const {
  return with_source(kernel_.input, source, *spec_);
}

CompileInput KernelBuild::reference_request(const ArtifactSource& source) const {
  return with_source(reference_.input, source, *spec_);
}

}  // namespace cubind
