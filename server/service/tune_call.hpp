// Tune and WatchJob: a stream of events about one or more jobs, until all have ended.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "schemas/cubind.pb.h"
#include "server/service/context.hpp"
#include "server/service/open_call.hpp"

namespace cubind {

/// Everything but reading the request and looking for fresh problems happens on the job thread. A slow reader
/// gets the latest progress of each job, not all of it; last events are never left out.
class TuneCall final : public grpc::ServerWriteReactor<grpc::ByteBuffer>,
                       public std::enable_shared_from_this<TuneCall> {
 public:
  static grpc::ServerWriteReactor<grpc::ByteBuffer>* tune(ServiceContext& context, OpenCallPtr open,
                                                          v1::TuneRequest request);
  static grpc::ServerWriteReactor<grpc::ByteBuffer>* watch(ServiceContext& context, OpenCallPtr open,
                                                           const v1::WatchJobRequest& request);

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override { self_.reset(); }

 private:
  TuneCall(ServiceContext& context, OpenCallPtr open) : context_(context), open_(std::move(open)) {}

  static std::shared_ptr<TuneCall> make(ServiceContext& context, OpenCallPtr open);
  struct Asked {
    Question question;
    std::optional<AnswerCandidate> fresh = {};  // there is nothing left to tune
    bool for_bucket = false;
    SearchBudget budget = {};
    RecordPtr before = nullptr;  // that is measured again; null: the problem is tuned
    std::vector<Configuration> listed = {};
    std::uint32_t rounds = 0;
    bool from_scratch = false;  // as if nothing were known
  };
  /// On the background thread: it reads specs and the store.
  void look_for_fresh(const v1::TuneRequest& request);
  std::vector<Asked> tunings(const v1::TuneRequest& request, std::vector<RecordQuestion>& fresh);
  std::vector<Asked> verifications(const v1::TuneRequest& request);
  /// The job thread hears agents between two slices.
  void submit_slice(std::shared_ptr<const std::vector<Asked>> asked, std::size_t first, bool retune);
  void follow(const JobEvent& job);
  /// Every event of the job says what was known before.
  void remember(const std::string& job, const std::string& device, const RecordPtr& before);
  void watch_job(const std::string& id);
  /// The latest event of a job that has ended.
  void send_ended(JobEvent ended);
  void on_event(const JobEvent& event);
  void send(v1::TuneEvent event);
  void send_fresh(const Question& question, const AnswerCandidate& winner);
  void write_next();
  void finish(const grpc::Status& status);

  ServiceContext& context_;
  const OpenCallPtr open_;
  std::shared_ptr<TuneCall> self_;
  std::optional<LentGpu> lent_;    // by the caller, from the first submitted job on
  std::atomic<bool> left_{false};  // the caller: what is not submitted yet never is
  /// On the job thread:
  bool detach_ = false;
  bool hastens_ = true;  // a caller who waits moves the job ahead; a reader does not
  std::uint64_t lend_ = 0;
  bool submitting_ = false;                         // more slices follow
  std::map<std::string, std::uint64_t> watches_;    // job id to watch
  std::map<std::string, v1::RecordBefore> before_;  // by job id
  std::deque<v1::TuneEvent> waiting_;               // to be written
  grpc::ByteBuffer writing_;
  bool is_writing_ = false;
  bool finished_ = false;
};

}  // namespace cubind
