// CheckKernel: parses a spec, counts its configurations, has its default configuration compiled. Nothing is
// stored.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "schemas/cubind.pb.h"
#include "server/service/context.hpp"
#include "server/service/open_call.hpp"

namespace cubind {

/// Parses and counts on the thread of walks, compiles through the job thread.
class CheckCall final : public grpc::ServerUnaryReactor, public std::enable_shared_from_this<CheckCall> {
 public:
  static grpc::ServerUnaryReactor* start(ServiceContext& context, OpenCallPtr open,
                                         v1::CheckKernelRequest request, grpc::ByteBuffer& reply);
  void OnCancel() override;
  void OnDone() override { self_.reset(); }

 private:
  CheckCall(ServiceContext& context, OpenCallPtr open, v1::CheckKernelRequest request,
            grpc::ByteBuffer& reply)
      : context_(context),
        open_(std::move(open)),
        check_(open_->hold(Held::Checks)),
        request_(std::move(request)),
        reply_bytes_(reply) {}

  /// What is counted and compiled for.
  struct Target {
    DeviceConstants constants;
    std::string label;  // of the device, or a description
    std::string architecture;
  };

  void check();
  void parse();
  void choose_targets();
  void warn_about_spec();
  /// A problem for which an expression fails has the error in its report; the others go on.
  void count(const Problem& problem);
  void count_for_all(const Problem& problem);
  /// Throws the first fault where every problem has one.
  void fail_without_problems() const;
  void count_for(const Problem& problem, const Target& target);
  /// The caller is there, the daemon stays, and the call has not yet cost more than it may.
  void go_on();
  void order_default(const Problem& problem, const Target& target);
  void add_plan(const Problem& problem, const Configuration& configuration, const DeviceConstants& constants);
  /// Of a compile of the sent source.
  ToolchainNeed need_for(const std::string& architecture) const;
  void compile();
  /// On the job thread.
  void submit_orders();
  void compiled(std::size_t index, const v1::CheckResult& result, const std::string& error);
  void default_compiled(const CheckOrder& order, const v1::CheckResult& result);
  void finish(grpc::Status status);

  ServiceContext& context_;
  const OpenCallPtr open_;
  const CallerLimits::Hold check_;
  const v1::CheckKernelRequest request_;
  v1::CheckKernelReply reply_;
  grpc::ByteBuffer& reply_bytes_;
  std::shared_ptr<CheckCall> self_;
  std::atomic<bool> cancelled_{false};
  std::uint64_t steps_ = 0;  // of counting
  std::shared_ptr<const KernelSpec> spec_;
  std::vector<Target> targets_;
  std::optional<Error> fault_;  // of the first problem that has one
  std::vector<CheckOrder> orders_;
  std::set<Digest> ordered_;  // sources: two problems may compile the same code
  // On the job thread:
  std::vector<std::string> checks_;  // ids of what agents were asked for
  std::size_t answered_ = 0;
  std::optional<grpc::Status> failure_;
};

}  // namespace cubind
