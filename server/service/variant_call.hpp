// One GetVariant: looks up, starts the job or compile that a miss needs, waits as long as the caller allows,
// answers.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>

#include "schemas/cubind.pb.h"
#include "server/service/compile_wait.hpp"
#include "server/service/context.hpp"
#include "server/service/job_wish.hpp"
#include "server/service/open_call.hpp"
#include "server/service/reply_cache.hpp"

namespace cubind {

/// Begins on gRPC's thread; a call that has to wait goes on on the job thread. It is finished once, and lives
/// until gRPC has said OnDone and nothing on the job thread holds it.
class VariantCall final : public grpc::ServerUnaryReactor, public std::enable_shared_from_this<VariantCall> {
 public:
  /// Request and reply in wire format. An earlier answer goes out again without a call of its own.
  static grpc::ServerUnaryReactor* start(ServiceContext& context, OpenCallPtr open,
                                         const grpc::CallbackServerContext& call,
                                         const grpc::ByteBuffer& request, grpc::ByteBuffer& reply);

  void OnCancel() override;
  void OnDone() override { self_.reset(); }

 private:
  using Time = std::chrono::steady_clock::time_point;

  /// How far the call has come; it never goes back.
  enum class Phase : std::uint8_t {
    Begun,
    AgentAwaited,  // no agent was connected: begin() runs again, with the first agent or without one
    CubinLost,     // the cubin of the first answer could not be read: another answer was looked up
    Finished,
  };

  VariantCall(ServiceContext& context, OpenCallPtr open, const grpc::CallbackServerContext& call,
              grpc::Slice request, grpc::ByteBuffer& reply, Time begun);

  void begin();
  /// Gives a question without a kernel the one of its hint; false: it needs none.
  bool resolve_hint(v1::GetVariantRequest& request) const;
  /// Whether begin() is called again: no agent is connected, and the call has not waited for one yet.
  bool begin_with_an_agent();
  void resolve();
  /// A miss whose kernel has no valid default looks for the first valid configuration, which may take long.
  bool needs_walk() const;
  /// On the thread of walks; goes on on the job thread.
  void find_fallback();
  // All of these on the job thread:
  void on_miss();
  /// Whether a record that has come since the look-up answers, or since the generation that is pinned.
  bool measured_since() const;
  void start_job();
  /// Leaves job_, or the reason in no_job_because_.
  void submit_job(const JobWish& wish);
  /// The miss started no job: this one. Not counted while the store takes no writes.
  void count_want(const RecordQuestion& wanted);
  void wait_for_job();
  /// For an error: what the best candidate lacks, and what `accept` would take it.
  std::string best_there_is() const;
  /// Whether the caller lends a GPU that the job may run on.
  bool lends_to_job() const;
  void serve();
  void serve_again();
  void stop_waiting();
  void end_lend();

  void reply_now();
  /// Throws if the locked generation cannot answer with what was measured.
  void refuse_changed_answers();
  /// Why the question starts no compile and no job; null: it may.
  const char* starts_nothing_because() const;
  bool may_start_work() const { return starts_nothing_because() == nullptr; }
  CompileAttempts attempts() const;
  /// The reason why there is no better answer; empty: the job's state says all.
  std::string why() const;
  bool stays_the_answer(const Digest& cubin, bool has_cubin) const;
  /// The answer's bytes are no longer in the store, or were damaged; true once for a call.
  bool cubin_is_lost();
  void finish(const grpc::Status& status);
  /// Runs a step; what it throws finishes the call.
  void step(const std::function<void()>& body);

  ServiceContext& context_;
  const OpenCallPtr open_;
  const grpc::Slice request_;
  grpc::ByteBuffer& reply_;
  const Time begun_;
  const RequestId request_id_;
  std::shared_ptr<VariantCall> self_;

  ReplyState state_;  // before the lookup
  VariantQuestion asked_;
  std::shared_ptr<const IndexSnapshot> pinned_;        // by the asking training job; null: the newest
  std::shared_ptr<const IndexSnapshot> looked_up_in_;  // what resolution_ is of
  Resolution resolution_;
  std::optional<JobEvent> job_;  // that the miss started or met
  std::string no_job_because_;   // the miss started none
  std::string leaves_none_;      // the condition that no configuration satisfies, where one is known
  CompileWait compile_wait_;
  std::uint64_t watch_ = 0;  // of job_; 0: it is not waited for
  std::uint64_t lend_ = 0;   // of the caller's GPU, until the wait for job_ ends; 0: none
  Phase phase_ = Phase::Begun;
  AnswerPath path_ = AnswerPath::LookedUp;
  AnswerQuality quality_;  // of the reply
  bool by_hint_ = false;   // the question names no kernel
  std::atomic<bool> cancelled_{false};
};

}  // namespace cubind
