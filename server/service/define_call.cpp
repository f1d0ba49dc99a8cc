#include "server/service/define_call.hpp"

#include "base/error.hpp"
#include "server/defined_kernels.hpp"
#include "server/service/status.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind {
namespace {

constexpr std::uint64_t kMaxReceived = std::uint64_t{64} << 20;
constexpr const char* kFile = "DefineKernel";  // for messages

}  // namespace

grpc::ServerReadReactor<v1::DefineKernelPart>* DefineCall::start(ServiceContext& context,
                                                                 v1::DefineKernelReply& reply) {
  const std::shared_ptr<DefineCall> self(new DefineCall(context, reply));
  self->self_ = self;
  self->StartRead(&self->part_);
  return self.get();
}

void DefineCall::OnReadDone(bool ok) {
  if (!ok) {
    context_.background.post([self = shared_from_this()] { self->Finish(guarded([&] { self->define(); })); });
    return;
  }
  const grpc::Status status = guarded([&] { take(); });
  if (status.ok()) {
    StartRead(&part_);
  } else {
    Finish(status);
  }
}

void DefineCall::take() {
  refuse_while_draining(context_);
  received_ += part_.ByteSizeLong();
  if (received_ > kMaxReceived) {
    throw Error(ErrorCode::ResourceExhausted, kFile,
                "is longer than the limit of " + std::to_string(kMaxReceived) + " bytes");
  }
  if (bundle_.spec_json().empty()) {
    bundle_.set_file(kFile);
    bundle_.set_spec_json(part_.spec_json());
  }
  bundle_.mutable_files()->MergeFrom(part_.files());
}

void DefineCall::define() {
  refuse_while_draining(context_);
  const std::shared_ptr<const KernelSpec> spec = parse_kernel_spec(bundle_from_wire(bundle_));
  if (!spec->triton) {
    throw Error(ErrorCode::InvalidArgument, std::string(kFile) + " /language",
                "only Triton kernels are defined by a call: put a CUDA kernel's files into a folder of "
                "--kernels");
  }
  if (context_.defined.add(*spec)) {
    context_.kernels.reload();
  }
  reply_.set_name(spec->name);
}

}  // namespace cubind
