#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/error.hpp"
#include "tuner/agent/compile/compile_source.hpp"
#include "tuner/agent/compile/kernel_build.hpp"
#include "tuner/agent/device/consent_gate.hpp"
#include "tuner/agent/device/prepare_request.hpp"
#include "tuner/agent/device/remote_device.hpp"
#include "tuner/agent/tuning/candidates.hpp"
#include "tuner/agent/tuning/job_input.hpp"

namespace cubind {

/// A problem that the device is made ready for when needed: the measured one, or a tail.
struct DeviceSetup {
  static constexpr std::uint32_t kMain = 0;
  std::uint32_t number = kMain;
  Problem problem;
  LaunchPlan plan;  // of the candidate for this problem, without symbols; empty where none is launched
};

/// ResourceExhausted: the device has no memory for the buffers of a problem.
class OutOfDeviceMemory : public Error {
 public:
  OutOfDeviceMemory(std::string where, const std::string& what)
      : Error(ErrorCode::ResourceExhausted, std::move(where), what) {}
};

/// The job's trials on the device. Prepares, loads and compiles everything that a request needs and a fresh
/// worker lacks, and gives way while another process uses the GPU. Knows nothing of the stored results. Used
/// from the job's thread.
///
/// A problem that the device cannot be made ready for ends the job: OutOfDeviceMemory if its buffers do not
/// fit, Error(FailedPrecondition) if its reference fails.
class TrialDevice {
 public:
  TrialDevice(const JobInput& input, const KernelBuild& build, CompileSource& artifacts, RemoteDevice& remote,
              ConsentGate& consent);

  CompileSource::Wanted wanted(const Candidate& candidate) const;
  /// The first of a Triton kernel's configurations that compiles and has the shared memory that it asks for,
  /// of which only the compiler tells; the next `ahead` are compiled meanwhile. Without any, the first one.
  Configuration launchable_default(std::size_t ahead);
  /// Lets the compiler begin with the reference, which the first verification waits for.
  void want_reference();

  /// Makes the device ready for the measured problem. Needed only for the facts that it reports then.
  void make_ready();
  /// The reply is about the trial: an outcome of loading it, or of verifying it. It has hashes of these parts
  /// of a correct trial's outputs.
  v1::DeviceReply verify(const Candidate& candidate, const DeviceSetup& setup, bool after_timing,
                         const std::vector<v1::OutputParts>& hashed = {});

  struct Item {
    const Candidate* candidate = nullptr;
    std::uint32_t samples = 0;
    std::uint32_t first_sample = 0;  // how many samples of this trial and stage exist
  };
  struct Measured {
    v1::DeviceReply reply;
    const Candidate* culprit =
        nullptr;  // that the reply's outcome is about; null: all were measured, or it is unknown
  };
  /// As MeasureTrials has them.
  struct Sampling {
    v1::SampleBlock::Stage stage;
    bool guarded = false;
    std::uint64_t input_seed = 0;
  };
  Measured measure(const std::vector<Item>& items, const Sampling& how);

  void meanwhile(std::function<void()> work) { remote_.meanwhile(std::move(work)); }
  void unload(const Candidate& candidate) { remote_.unload(candidate.number); }
  void release(const DeviceSetup& setup) { remote_.release(setup.number); }
  /// Of the worker that answered last.
  std::uint64_t generation() const { return remote_.generation(); }
  void restart() { remote_.restart(); }

 private:
  /// A judged source; its task's own is the default.
  bool is_untrusted(const Candidate& candidate) const;
  bool prints(const Candidate& candidate);
  CompileSource::Wanted wanted_reference(const Problem& problem) const;
  ReferenceLaunch reference_for(const Problem& problem);
  ReferenceLaunch default_reference(const Problem& problem);
  /// Replies foreign use if the problem does not fit next to a process that the job gives way to. If a
  /// problem fills the memory, other setups are dropped, and prepared again when they are next needed.
  v1::DeviceReply prepare(const DeviceSetup& setup);
  v1::DeviceReply prepare_beside_others(const DeviceSetup& setup);
  v1::PrepareProblem setup_request(const DeviceSetup& setup);
  v1::DeviceReply load(const Candidate& candidate);
  /// `plan`: of the candidate, as it is launched.
  LaunchPlan compiled_plan(const Candidate& candidate, const LaunchPlan& plan) const;
  Measured try_measure(const std::vector<Item>& items, const Sampling& how);
  /// Whether a reply that saw foreign use is void; waits until the GPU is free again.
  bool has_to_repeat(const v1::DeviceReply& reply, bool complete);

  const JobInput& input_;
  const KernelBuild& build_;
  CompileSource& artifacts_;
  RemoteDevice& remote_;
  ConsentGate& consent_;
  unsigned repeats_ = 0;  // in a row
  bool knows_vacuity_ = false;
  std::map<std::uint32_t, bool> prints_;  // untrusted candidates, by number
};

}  // namespace cubind
