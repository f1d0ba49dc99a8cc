#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>

#include "schemas/agent.pb.h"
#include "schemas/cubind.pb.h"
#include "server/service/context.hpp"

namespace cubind {

/// DefineKernel.
class DefineCall final : public grpc::ServerReadReactor<v1::DefineKernelPart>,
                         public std::enable_shared_from_this<DefineCall> {
 public:
  static grpc::ServerReadReactor<v1::DefineKernelPart>* start(ServiceContext& context,
                                                              v1::DefineKernelReply& reply);
  void OnReadDone(bool ok) override;
  void OnDone() override { self_.reset(); }

 private:
  DefineCall(ServiceContext& context, v1::DefineKernelReply& reply) : context_(context), reply_(reply) {}
  void take();
  void define();

  ServiceContext& context_;
  v1::DefineKernelReply& reply_;
  std::shared_ptr<DefineCall> self_;
  v1::DefineKernelPart part_;
  v1::SpecBundle bundle_;
  std::uint64_t received_ = 0;  // bytes, as they came
};

}  // namespace cubind
