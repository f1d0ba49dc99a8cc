// From requests to checked questions. Errors name the field: "problem.dims[1].value: ...".
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "plan/on_miss.hpp"
#include "plan/search.hpp"
#include "schemas/cubind.pb.h"
#include "server/defined_kernels.hpp"
#include "server/fleet.hpp"
#include "server/jobs/agent.hpp"
#include "server/kernel_library.hpp"
#include "server/lookup/lookup.hpp"

namespace cubind {

/// A GetVariantRequest, checked.
struct VariantQuestion {
  Question question;
  std::optional<Match> accepted;  // absent: every departure is
  OnMiss on_miss = OnMiss::Serve;
  bool may_tune = true;
  bool names_device = false;                       // by a label: the caller need not have such a GPU
  bool is_sealed = false;                          // starts neither a job nor a compile
  std::chrono::milliseconds compile_wait{2000};    // where another candidate can answer meanwhile
  std::chrono::milliseconds longest_wait{30'000};  // where none can
  std::vector<Digest> have;
  std::string job;                        // empty: pins no generation
  std::optional<Generation> locked = {};  // that the job pins: nothing else answers
  std::optional<LentGpu> lent = {};       // while the call waits
  bool with_plan = false;                 // evaluated, in the reply
};

/// Throws InvalidArgument where a limit is passed.
SearchBudget budget_of(const v1::TuneRequest& request);

/// The listed configurations in terms of the question's spec; empty: the request lists none. Throws
/// InvalidArgument if it lists too many, and for options that contradict a list.
std::vector<Configuration> listed_of(const v1::TuneRequest& request, const KernelSpec& spec);

/// Thread-safe.
class QuestionReader {
 public:
  QuestionReader(KernelLibrary& kernels, const DefinedKernels& defined, const Index& index,
                 const Fleet& fleet)
      : kernels_(kernels), defined_(defined), index_(index), fleet_(fleet) {}

  VariantQuestion read(const v1::GetVariantRequest& request) const;
  /// One for each problem, in their order.
  std::vector<Question> read(const v1::TuneRequest& request) const;
  /// An earlier question in terms of today's spec and flush method. Throws if it can no longer be asked:
  /// NotFound, or FailedPrecondition if the kernel has another interface now.
  Question read(const RecordQuestion& stored, const DeviceClass& device) const;
  /// A label, or facts; `field` is the place.
  DeviceClass device(const v1::Device& device, const std::string& field) const;

 private:
  struct Common {
    std::shared_ptr<const KernelEntry> kernel;
    DeviceClass device;
    std::optional<DriverVersion> driver;
    DeviceFacts gpu;
    Policy policy;
    Numerics numerics;
    std::string name_space;
  };
  void ask_as_measured(Common& common) const;
  Question question(const Common& common, const v1::Problem& problem, const std::string& field) const;

  KernelLibrary& kernels_;
  const DefinedKernels& defined_;
  const Index& index_;
  const Fleet& fleet_;
};

}  // namespace cubind
