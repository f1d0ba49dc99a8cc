#pragma once

#include <cstdint>

#include "schemas/agent.pb.h"
#include "schemas/cubind.pb.h"
#include "server/service/context.hpp"
#include "server/service/upload.hpp"

namespace cubind {

/// DefineKernel.
class DefineCall final : public Upload<v1::DefineKernelPart> {
 public:
  DefineCall(ServiceContext& context, v1::DefineKernelReply& reply)
      : Upload(context.background), context_(context), reply_(reply) {}

 private:
  void take(const v1::DefineKernelPart& part) override;
  void work() override;

  ServiceContext& context_;
  v1::DefineKernelReply& reply_;
  v1::SpecBundle bundle_;
  std::uint64_t received_ = 0;  // bytes, as they came
};

}  // namespace cubind
