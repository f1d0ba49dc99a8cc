#pragma once

#include <atomic>
#include <condition_variable>
#include <future>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/subprocess.hpp"
#include "tuner/agent/compile/ahead_compiles.hpp"
#include "tuner/agent/compile/toolbox.hpp"
#include "tuner/agent/device/agent_gpu.hpp"
#include "tuner/agent/lease/gpu_lends.hpp"
#include "tuner/agent/lease/lease_channel.hpp"
#include "tuner/agent/lease/lease_stream.hpp"
#include "tuner/agent/options.hpp"

namespace cubind {

// Offers this machine to a daemon and works on the leases that it grants: each in a thread of its own, one
// tuning job at a time on a device. When the stream breaks the leases are lost, their jobs are dropped and
// the daemon is sought again.
class Agent {
 public:
  explicit Agent(AgentOptions options);
  ~Agent();
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // Blocks. `wait` sleeps for at most the given time and returns true when the agent is to end (a signal, its
  // parent's end). Then each job ends with the trial under way, or after 2 s without it, and is handed back
  // within 5 s in all; run() returns. It also returns after a time without work, if the options say so.
  // Throws Error(FailedPrecondition) where the daemon refuses the agent at its first hello, and what
  // open_channel() throws where the first stream cannot be opened.
  void run(const std::function<bool(std::chrono::milliseconds)>& wait);

 private:
  struct Work;

  v1::Hello hello();
  /// False if it cannot be opened now, which the log says once.
  bool open_stream();
  void serve(const std::function<bool(std::chrono::milliseconds)>& wait, bool& ending);
  /// Until the stream breaks or the agent ends.
  void attend(const std::function<bool(std::chrono::milliseconds)>& wait, bool& ending);
  bool is_idle_for_long();
  void hand_back();
  void wait_for_works(std::chrono::milliseconds time);
  void say_it_leaves();
  void handle(const v1::DaemonMessage& message);
  void take(const v1::LeaseGrant& page);
  void begin(const v1::LeaseGrant& lease);
  void begin(const v1::CheckOrder& order);
  void take(const v1::Lends& lends);
  void get_compilers_ready();
  void compile_ahead(const v1::LeaseGrant& job, AheadCompiles::Urgency urgency);
  void work_on(Work& work, const v1::LeaseGrant& lease);
  v1::JobResult work_result(Work& work, const v1::LeaseGrant& lease);
  v1::JobResult tune(Work& work, const v1::LeaseGrant& lease);
  void offer_again(AgentGpu& gpu, const v1::DeviceInfo& info);
  v1::AgentMessage offers();  // with mutex_ held
  void say_what_there_is(AgentGpu& gpu, v1::JobResult& refused);
  void look_at_memory();
  void note_memory_of_idle();
  void offer_changed_memory();
  AgentGpu& gpu_for(const v1::LeaseGrant& lease);
  const Tool& tool_for(const v1::OfferedDevice& offer, const v1::SpecBundle& kernel) const;
  void end_left_workers();
  void keep_spares();
  void end_ahead(const std::string& gpu_uuid);
  void end_all_ahead();
  std::list<std::shared_ptr<Work>> works();
  /// Null: it is over.
  std::shared_ptr<Work> find_work(const std::string& lease_id);
  bool has_work();
  void stop_all(JobStop::Kind kind);
  void reap(bool all);
  void send_heartbeats();
  void say_it_is_there();

  const AgentOptions options_;
  RealClock clock_;
  Spawner spawner_;
  std::vector<std::unique_ptr<AgentGpu>> gpus_;
  std::string no_device_because_;  // without places
  GpuLends lends_;
  std::unique_ptr<Toolbox> toolbox_;
  std::unique_ptr<LeaseStream> stream_;
  v1::LeaseGrant pages_;  // of a lease that is not complete; of the stream's thread
  std::atomic<std::chrono::milliseconds> heartbeat_{};  // as the daemon welcomed it; 0: not yet
  bool was_welcomed_ = false;                           // by this daemon or an earlier one
  std::string not_opened_;                              // why the last stream was not opened; empty: it was
  std::chrono::steady_clock::time_point busy_ = std::chrono::steady_clock::now();  // until then, at least
  std::chrono::steady_clock::time_point said_{};
  std::chrono::steady_clock::time_point looked_{};  // at free memory
  std::future<void> looking_;                       // at a GPU's driver, which may take its time
  std::stop_source ending_;                         // ends what waits for a driver

  std::mutex mutex_;
  std::list<std::shared_ptr<Work>> works_;                       // guarded by mutex_
  std::map<std::string, std::unique_ptr<AheadCompiles>> ahead_;  // by GPU; guarded by mutex_
  bool memory_has_changed_ = false;  // guarded by mutex_: the devices are to be offered again
  bool draining_ = false;            // guarded by mutex_: no new work
};

}  // namespace cubind
