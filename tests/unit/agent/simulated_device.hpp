// A device in memory: samples are a pure function of trial, stage and k, kernels fail as scripted.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "plan/problem.hpp"
#include "tuner/agent/device/device_link.hpp"

namespace cubind::test {

/// What a kernel does, by its configuration; "correct" kernels take a time.
struct Behaviour {
  std::function<double(const Configuration&)> time_us = {};
  double noise = 0;  // relative
  /// Called before a verification or measurement; the outcome that it shall have.
  std::function<v1::Outcome(const Configuration&, const std::string& at)> outcome = {};
  std::function<bool(const Configuration&, const Problem&, bool after_timing)> wrong = {};
  std::function<bool(const Configuration&)> below_floor = {};
  std::function<bool(const Configuration&)> damages = {};               // writes outside of its buffers
  std::function<std::uint32_t(const Configuration&)> max_threads = {};  // of a block; 0: not told
  std::function<bool()> foreign = {};
  bool answers_beside_others = false;  // foreign use is seen, and requests are answered nevertheless
  std::function<bool(const Configuration&)> bits_differ = {};
  /// What the bits of the first elements of an output depend on besides their place: 0 where on nothing.
  std::function<std::uint64_t(const Configuration&, const Problem&, std::uint64_t elements)> row_bits = {};
  bool sticky = true;  // faults lose the context
  bool dies = false;   // faults take the worker with them, without a reply
  bool throttled = false;
  double tick_us = 0.032;
  std::string replay_table = {};   // digest of the table that it plays
  std::uint64_t memory_limit = 0;  // what trials may use; 0: not told, nothing is refused for it
  std::function<bool(const Problem&)> refuses_to_prepare = {};  // out of memory
  int hangs_preparing = 0;     // so many requests to prepare a problem get no answer in time
  int failing_references = 0;  // so many verifications fail since the reference does
  std::string vacuity = {};    // what it answers where it is asked whether outputs depend on inputs
};

class SimulatedDevice final : public DeviceLink {
 public:
  explicit SimulatedDevice(Behaviour behaviour) : behaviour_(std::move(behaviour)) {}

  void start() override;
  void stop() noexcept override;
  bool is_started() const override { return running; }
  CallResult call(const v1::DeviceRequest& request, std::chrono::milliseconds deadline,
                  const std::function<void()>& meanwhile) override;
  void interrupt() noexcept override {}

  v1::DeviceInfo info() const;

  using Sample = std::tuple<std::string, int, std::uint32_t>;  // trial key, stage, k
  std::map<Sample, int> measured;                              // how often each was
  std::map<std::string, int> verified;                         // "configuration at problem after"
  std::map<std::string, int> watched;                          // how often a configuration ran guarded
  std::set<std::uint64_t> shared_bytes;                        // of the launches, dynamic
  std::map<bool, std::set<std::uint64_t>> input_seeds;         // by whether it was after timing
  std::map<std::string, std::uint32_t> launches;               // of the last verification, by configuration
  std::chrono::milliseconds measured_within{0};                // the deadline of the last measurement
  std::vector<std::uint64_t> round_seeds;                      // of the inputs of each round
  std::set<std::string> untrusted;                             // configurations whose rounds are compared
  std::vector<std::vector<std::string>> rounds;  // trial keys of each round of finalists, in its order
  int worked_beside_others = 0;                  // requests that use the GPU and came while others did
  int starts = 0;
  bool running = false;
  std::function<void()> on_measure = [] {};  // the time that it takes
  Behaviour& behaviour() { return behaviour_; }

 private:
  struct Loaded {
    Configuration configuration;
    std::string key;
  };
  void note_shared(const v1::LaunchPlan& plan);
  bool refuses(const v1::PrepareProblem& request) const;
  v1::DeviceReply load(const v1::LoadTrial& request);
  v1::DeviceReply work(const v1::DeviceRequest& request);
  v1::DeviceReply verify(const v1::VerifyTrial& request);
  v1::DeviceReply measure(const v1::MeasureTrials& request);
  double sample(const Loaded& trial, int stage, std::uint32_t k) const;
  v1::Outcome outcome(const Configuration& configuration, const std::string& at) const;
  CallResult answer(v1::DeviceReply reply);

  Behaviour behaviour_;
  std::map<std::uint32_t, Problem> setups_;
  std::map<std::uint32_t, std::uint64_t> bytes_;  // of the setups
  std::map<std::uint32_t, Loaded> loaded_;
};

}  // namespace cubind::test
