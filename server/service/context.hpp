// The objects that the services share. Owned by Daemon, which outlives every call.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "server/access/call_rules.hpp"
#include "server/answer/answerer.hpp"
#include "server/answer/blob_cache.hpp"
#include "server/convert/questions.hpp"
#include "server/fair_strand.hpp"
#include "server/fleet.hpp"
#include "server/jobs/scheduler.hpp"
#include "server/kernel_library.hpp"
#include "server/lookup/pins.hpp"
#include "server/service/answer_counts.hpp"
#include "server/service/saved_work.hpp"
#include "server/strand.hpp"

namespace cubind {

class ArtifactBudget;
class AuditLog;
class CallerLimits;
class DefinedKernels;
class Gate;
class ReplyCache;
class SignedRecords;
class Store;

struct ServiceContext {
  Store& store;
  Index& index;
  KernelLibrary& kernels;
  DefinedKernels& defined;
  Fleet& fleet;
  Scheduler& scheduler;  // on `jobs` alone
  ArtifactFinder& artifacts;
  Pins& pins;
  Answerer& answerer;
  BlobCache& blobs;
  const ArtifactBudget& budget;
  ReplyCache& replies;
  QuestionReader& questions;
  const Clock& clock;
  Strand& jobs;            // the job thread
  FairStrand& background;  // long work that no lease waits for: tables, lists, tunings
  FairStrand& walks;       // walks through spaces, each bounded: answers never wait behind them
  const Gate& gate;        // before every call
  const AuditLog& audit;
  CallerLimits& limits;

  /// A call that waits for the daemon's agent, until then at most.
  using AwaitsAgent = std::pair<std::chrono::steady_clock::time_point, std::function<void()>>;
  std::vector<AwaitsAgent> await_agent = {};  // on the job thread

  const SignedRecords* signed_records = nullptr;  // of the bundle that is served; null: none is
  std::chrono::steady_clock::time_point started_at{};
  std::chrono::milliseconds heartbeat{2000};
  std::chrono::milliseconds longest_pause{60'000};  // of a caller that uploads, or reads a table
  bool sealed = false;                              // questions start nothing
  std::atomic<bool> draining{false};
  std::atomic<std::uint64_t> hits{0};  // but for those that the replies count
  std::atomic<std::uint64_t> misses{0};
  AnswerCounts answers{};
  SavedWork saved{store, answers};
  /// Queues compiles of winners for the classes that agents offer; from any thread.
  std::function<void()> prebuild = {};
};

/// Throws Unavailable while the daemon shuts down.
void refuse_while_draining(const ServiceContext& context);
/// Throws FailedPrecondition for a call that changes something, while the daemon serves a bundle.
void refuse_changes_of_bundle(const ServiceContext& context, Call kind);
/// For a caller whose wait for the job ends by that.
Error daemon_stops(const std::string& job);
/// Throws Cancelled for a caller that has withdrawn.
void refuse_withdrawn(const std::atomic<bool>& cancelled);
/// refuse_while_draining() and refuse_withdrawn(): long work asks now and then.
void refuse_to_go_on(const ServiceContext& context, const std::atomic<bool>& cancelled);

}  // namespace cubind
