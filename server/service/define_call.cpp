#include "server/service/define_call.hpp"

#include "base/error.hpp"
#include "server/defined_kernels.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind {
namespace {

constexpr std::uint64_t kMaxReceived = std::uint64_t{64} << 20;
constexpr const char* kFile = "DefineKernel";  // for messages

// Data that do not fit their buffer would end every job for the kernel.
void check_data(const KernelSpec& spec) {
  for (const ArgumentSpec& argument : spec.arguments) {
    if (argument.fill.kind == Fill::Kind::File) {
      spec.file_data(argument, {});
    }
  }
}

}  // namespace

void DefineCall::take(const v1::DefineKernelPart& part) {
  refuse_while_draining(context_);
  received_ += part.ByteSizeLong();
  if (received_ > kMaxReceived) {
    throw Error(ErrorCode::ResourceExhausted, kFile,
                "is longer than the limit of " + std::to_string(kMaxReceived) + " bytes");
  }
  if (bundle_.spec_json().empty()) {
    bundle_.set_file(kFile);
    bundle_.set_spec_json(part.spec_json());
  }
  bundle_.mutable_files()->MergeFrom(part.files());
}

void DefineCall::work(v1::DefineKernelReply& reply) {
  refuse_to_go_on(context_, cancelled_);
  const std::shared_ptr<const KernelSpec> spec = parse_kernel_spec(bundle_from_wire(bundle_));
  if (!spec->triton) {
    throw Error(ErrorCode::InvalidArgument, std::string(kFile) + " /language",
                "only Triton kernels are defined by a call: put a CUDA kernel's files into a folder of "
                "--kernels");
  }
  check_data(*spec);
  refuse_without_sandbox(*spec);
  if (context_.defined.add(*spec, open_->is_foreign())) {
    context_.kernels.reload();
  }
  reply.set_name(spec->name);
}

void DefineCall::refuse_without_sandbox(const KernelSpec& spec) const {
  const auto agents = context_.fleet.agents();
  const ToolchainNeed need = toolchain_need(spec, open_->is_foreign());
  if (!current_toolchain(*agents, toolchain_need(spec, false))) {
    return;
  }
  if (!current_toolchain(*agents, need)) {
    throw Error(ErrorCode::FailedPrecondition, kFile, no_toolchain_because(need, *agents));
  }
}

}  // namespace cubind
