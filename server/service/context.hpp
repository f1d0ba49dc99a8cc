// The objects that the services share. Owned by Daemon, which outlives every call.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "server/answer/answerer.hpp"
#include "server/answer/blob_cache.hpp"
#include "server/convert/questions.hpp"
#include "server/fleet.hpp"
#include "server/jobs/scheduler.hpp"
#include "server/kernel_library.hpp"
#include "server/lookup/pins.hpp"
#include "server/strand.hpp"

namespace cubind {

class DefinedKernels;
class ReplyCache;
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
  ReplyCache& replies;
  QuestionReader& questions;
  const Clock& clock;
  Strand& jobs;        // the job thread
  Strand& background;  // long work that no lease waits for: tables, lists, tunings
  Strand& walks;       // walks through spaces, one at a time and bounded each: answers never wait behind them

  /// A call that waits for the daemon's agent, until then at most.
  using AwaitsAgent = std::pair<std::chrono::steady_clock::time_point, std::function<void()>>;
  std::vector<AwaitsAgent> await_agent = {};  // on the job thread

  std::chrono::steady_clock::time_point started_at{};
  std::chrono::milliseconds heartbeat{2000};
  std::atomic<bool> draining{false};
  std::atomic<std::uint64_t> hits{0};  // but for those that the replies count
  std::atomic<std::uint64_t> misses{0};
  /// Queues compiles of winners for the classes that agents offer; from any thread.
  std::function<void()> prebuild = {};
};

/// Throws Unavailable while the daemon shuts down.
void refuse_while_draining(const ServiceContext& context);
/// The same, and Cancelled for a caller that has withdrawn: long work asks now and then.
void refuse_to_go_on(const ServiceContext& context, const std::atomic<bool>& cancelled);

}  // namespace cubind
