// One thread that runs functions in the order in which they were posted. Data that only this thread uses
// needs no lock.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "base/request_id.hpp"

namespace cubind {

/// post() and post_at() are called from any thread, also from the strand itself. What post() takes runs for
/// the request that the caller works for. A function that throws is logged.
class Strand {
 public:
  using Function = std::function<void()>;
  using Time = std::chrono::steady_clock::time_point;

  Strand();
  /// close().
  ~Strand();
  Strand(const Strand&) = delete;
  Strand& operator=(const Strand&) = delete;

  /// False: the strand is closed, the function was dropped.
  bool post(Function function);
  void post_at(Time time, Function function);
  /// Posts and waits until it has run; throws its error, or Unavailable if the strand is closed. Not from the
  /// strand itself.
  void run(const Function& function);
  /// Runs the functions posted for now, drops those posted for later, and takes no more. Do not call it from
  /// the strand itself.
  void close();

 private:
  struct Task {
    Function function;  // empty: the strand is to end
    RequestId request;
  };

  void loop();
  Task take();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> ready_;               // guarded by mutex_
  std::multimap<Time, Function> later_;  // guarded by mutex_
  bool stopping_ = false;                // guarded by mutex_
  std::thread thread_;
};

}  // namespace cubind
