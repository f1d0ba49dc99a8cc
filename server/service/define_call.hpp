#pragma once

#include <cstdint>
#include <utility>

#include "schemas/agent.pb.h"
#include "schemas/cubind.pb.h"
#include "server/service/context.hpp"
#include "server/service/upload.hpp"
#include "tuner/spec/kernel_spec.hpp"

namespace cubind {

/// Throws PermissionDenied for an array of another process: the agent would read what the daemon's user may
/// read. For specs of other users.
void refuse_memory(const KernelSpec& spec);

/// DefineKernel.
class DefineCall final : public Upload<v1::DefineKernelPart, v1::DefineKernelReply> {
 public:
  DefineCall(ServiceContext& context, const OpenCallPtr& open, grpc::ByteBuffer& reply)
      : Upload(context, open, reply, [&context, open](Strand::Function work) {
          context.background.post(open->sharer(), std::move(work));
        }) {}

 private:
  void take(const v1::DefineKernelPart& part) override;
  void work(v1::DefineKernelReply& reply) override;

  /// Definitions do not stand in for the kernels of the daemon's folders.
  void refuse_name_of_folder(const std::string& name) const;
  /// A caller learns at once that no agent will compile what it sends.
  void refuse_without_sandbox(const KernelSpec& spec) const;

  v1::SpecBundle bundle_;
  std::uint64_t received_ = 0;  // bytes, as they came
};

}  // namespace cubind
