#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "schemas/cubind.pb.h"
#include "server/service/context.hpp"
#include "server/service/open_call.hpp"
#include "server/service/verdict.hpp"

namespace cubind {

/// Evaluate: a kernel and a job for each problem, which go with the call. Jobs and events are on the job
/// thread, all else is on the background thread.
class EvaluateCall final : public grpc::ServerUnaryReactor,
                           public std::enable_shared_from_this<EvaluateCall> {
 public:
  static grpc::ServerUnaryReactor* start(ServiceContext& context, OpenCallPtr open,
                                         v1::EvaluateRequest request, grpc::ByteBuffer& reply);

  void OnCancel() override;
  void OnDone() override { self_.reset(); }

 private:
  EvaluateCall(ServiceContext& context, OpenCallPtr open, v1::EvaluateRequest request,
               grpc::ByteBuffer& reply)
      : context_(context), open_(std::move(open)), request_(std::move(request)), reply_(reply) {}

  std::shared_ptr<const KernelSpec> read_task();
  void prepare();
  void define(const KernelSpec& task, const v1::Problem& problem, const DeviceClass& device);
  void submit();
  void on_event(const JobEvent& event);
  void conclude();
  /// Removes what the call has defined and, unless they are kept, the trials.
  void tidy_up();
  /// Runs the step on the background thread; an error ends the call.
  void in_background(void (EvaluateCall::*step)());
  void finish(const grpc::Status& status);

  ServiceContext& context_;
  const OpenCallPtr open_;
  const v1::EvaluateRequest request_;
  grpc::ByteBuffer& reply_;
  std::shared_ptr<EvaluateCall> self_;
  std::atomic<bool> left_{false};  // the caller
  JudgedFiles files_;
  std::vector<JudgedProblem> problems_;
  std::vector<std::string> defined_;  // kernels
  /// On the job thread:
  std::map<std::string, std::uint64_t> watches_;  // job id to watch
  bool finished_ = false;
};

}  // namespace cubind
