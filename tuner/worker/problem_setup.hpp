// The buffers of one problem on the device, their inputs, and the reference's outputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schemas/worker.pb.h"
#include "tuner/worker/guarded_buffer.hpp"
#include "tuner/worker/own_kernels.hpp"
#include "tuner/worker/plan_launcher.hpp"

namespace cubind::worker {

/// The result for one output of a variant.
struct OutputComparison {
  std::string output;
  verify::Comparison result;
};

/// The sample that is looked at when all were taken.
struct DrawnSample {
  std::uint32_t samples =
      0;                   // that are taken: fewer than were wanted if the slots would not keep the drawn one
  std::uint32_t back = 0;  // it comes so many before the last one
};

/// Holds for every variant: inputs are generated once for a seed and used until something may have changed
/// them, and the reference runs once for a seed. Inputs for verification and those for timing have other
/// seeds and addresses; where memory allows it, each have memory of their own, and what lies there is looked
/// at before it is used again. One thread; the methods throw DriverError for what the device refuses.
class ProblemSetup {
 public:
  /// Allocates everything, so that a problem that does not fit is known before anything is measured.
  ProblemSetup(DriverContext& context, MemoryBudget& budget, OwnKernels& kernels,
               const v1::PrepareProblem& request);

  const v1::PrepareProblem& request() const { return request_; }

  /// Buffers at their slot, inputs of this seed, and the reference's outputs for them. Throws
  /// Error(FailedPrecondition) where the reference writes outside its buffers.
  void prepare_verification(std::uint64_t input_seed);
  /// Whether a timed run may have left something that a later run could use.
  bool is_timed() const { return slots_ > 0; }
  /// The same at the addresses of timing, where the inputs for timing change in place. Unless `whole`, an
  /// input whose elements do not depend on each other changes in part, and keeps its first and last elements.
  /// So results that are kept by address, size or first elements are wrong. If the variant is `untrusted`,
  /// what it may know without reading it changes too, for variant and reference: the caller's floating-point
  /// scalars, the range of random numbers, and two elements of an integer `iota`, which are exchanged.
  void prepare_verification_in_place(std::uint64_t input_seed, bool whole, bool untrusted = false);
  /// At the addresses of timing: its inputs (pattern 0), or these with changes at scattered elements. A
  /// source is wrong that reads a sample of an input, or uses what it has kept of another pattern. Random
  /// floating-point numbers depart less from their mean there, other random ones are drawn again, and a few
  /// elements of a constant have another value. Not where outputs were recorded.
  void prepare_verification_scattered(std::uint64_t pattern);
  static constexpr std::uint64_t kPatterns = 9;
  /// Whether the reference's outputs depend on the poison that they had before: one is partial.
  bool has_partial_outputs() const;
  /// After prepare_verification(): the reference again, from this poison.
  void repeat_reference(std::byte poison);
  /// Explains why a comparison with the reference would prove nothing: none of its outputs depends on the
  /// inputs. Absent: one does, or there is no memory for a copy of the outputs. Call it first. It tries the
  /// seeds 0 and 1, and up to six more while no output has changed, and leaves the setup prepared for
  /// verification with the last one.
  std::optional<std::string> find_vacuity();
  /// Buffers at the first of the setup's slots in memory, and inputs for timing there and at the others.
  void prepare_timing();
  /// A sample begins: each buffer is at the next of its slots; after prepare_timing(). A plan has to be bound
  /// again.
  void next_slot();
  std::uint32_t slots() const { return slots_; }

  // Samples of an untrusted source.

  /// Other inputs for the present sample, where elements do not depend on each other and no outputs were
  /// recorded: enqueues renewals() kernels. forget_renewed() comes after the last sample.
  void renew_inputs(std::uint64_t seed);
  unsigned renewals() const;
  /// Those of as many samples as there are slots.
  void renew_slots(std::uint64_t seed);
  void forget_renewed();
  /// Poisons the outputs, runs the variant with copies of all buffers in memory behind whose end no address
  /// is valid, and copies back what it wrote. After bind(). False, and nothing is done, if there is no room.
  bool run_fenced(const LoadedModule& module, const LaunchPlan& plan);
  /// Of so many samples, at least 1, any comes up, in another order in each job.
  DrawnSample draw(std::uint32_t samples) const;
  /// Buffers where they were `back` samples before the last one, unless a later one was at one of these
  /// places, too: then where they were at the last one.
  void return_to(std::uint32_t back);
  /// Whether the present sample's inputs are what they were before it. Those that were renewed with this
  /// seed, unless it is 0, are made again.
  std::optional<std::string> find_changed_input(std::uint64_t seed);

  /// Before a run under verification: outputs poisoned, `inout` restored, `zero` cleared, scratch poisoned.
  void poison(std::byte value);
  /// The same, but outputs hold values that could be results, as they do when a variant is timed: a variant
  /// that leaves alone what looks finished is wrong. A partial output is poisoned.
  void make_stale();
  /// Before a timed run: `inout` restored and untimed `zero` cleared. Enqueues memory operations alone, no
  /// kernels.
  void restore();
  bool needs_restore() const;
  /// Instead, before a timed run whose outputs are compared: like poison(), by memory operations alone.
  void poison_timed();
  /// After it, at the same slot: compares with the reference's outputs for the inputs that lie there.
  std::vector<OutputComparison> compare_timed();
  /// `zero` buffers of the plan whose clearing counts as work of the variant: cleared by kernels, as many as
  /// timed_clears().
  void clear_timed(const BoundPlan& plan);
  unsigned timed_clears(const BoundPlan& plan) const;

  /// Binds to the buffers where they are now; before poison(), because scratch buffers may grow here.
  BoundPlan bind(const LoadedModule& module, const LaunchPlan& plan);

  /// After a run: its writes outside its buffers or into its inputs; absent: none.
  std::optional<std::string> find_damage();
  /// Compares with the reference's outputs, which were made from the same poison, within the tolerances or
  /// exactly.
  std::vector<OutputComparison> compare_outputs(bool exactly = false);
  /// In place of a run: outputs become 0, or what `inout` ones were before.
  void poison_blank() { poison_outputs(std::byte{0}, false); }
  /// One of each output.
  std::vector<std::uint64_t> output_hashes();
  /// Covers the first elements of some outputs. Throws Error(InvalidArgument) if a buffer is not an output,
  /// or is shorter.
  std::uint64_t hash_of(const v1::OutputParts& parts);
  /// Something may have been overwritten: inputs and reference are made again before the next run.
  void distrust() {
    inputs_of_.reset();
    kept_inputs_.clear();
    reference_of_.reset();
    are_slots_filled_ = false;
  }

 private:
  struct Buffer {
    v1::BufferSpec spec;
    GuardedBuffer variant;
    std::optional<GuardedBuffer> reference;  // the reference's output; inputs are shared
    DeviceMemory pristine;                   // inout: its content before a launch
    DeviceMemory expected;                   // outputs under reference "expected"
    std::optional<DType> expected_type;
    DeviceMemory uploaded{};  // a file's content, where there is room
    std::uint64_t uploaded_hash = 0;
  };
  /// How much the seed changes of an input whose elements do not depend on each other.
  enum class Change : std::uint8_t { All, Part, PartOfUntrusted, Scattered };
  struct InputSet {
    std::uint64_t seed = 0;
    Change change = Change::All;
    auto operator<=>(const InputSet&) const = default;
  };
  struct InputState {
    InputSet set;
    Placement placement = Placement::Aligned;
    bool operator==(const InputState&) const = default;
  };

  void add_buffer(const v1::BufferSpec& spec, std::uint32_t number);
  void upload_expected();
  void make_inputs(InputState wanted);
  bool has_kept(const InputState& wanted);
  void part_inputs();
  std::uint64_t spare_bytes() const;
  void make_slots();
  void fill_slot(std::uint32_t slot);
  void make_input(Buffer& buffer, const InputSet& set);
  void fill_input(Buffer& buffer, std::uint64_t input_seed);
  void upload(Buffer& buffer, std::uint64_t seed);
  void keep_uploaded(Buffer& buffer);
  std::uint64_t hash_of_uploaded(const Buffer& buffer);
  bool is_renewed(const Buffer& buffer) const;
  std::uint32_t slot_of(std::uint32_t buffer, std::uint64_t sample) const;
  void move_to_sample(std::uint64_t sample);
  bool is_overwritten(std::uint64_t sample) const;
  std::optional<std::string> changed_input(const std::vector<std::uint64_t>& made,
                                           const std::vector<std::uint64_t>& found) const;
  void change_part(const Buffer& buffer, const InputSet& set);
  void change_scattered(const Buffer& buffer, std::uint64_t pattern);
  void change_single(const Buffer& buffer, const FillWork& work);
  void exchange_two(const Buffer& buffer, std::uint64_t input_seed);
  std::vector<const Buffer*> inputs() const;
  std::vector<std::uint64_t> hash_inputs();
  std::map<std::string, DeviceMemory> copy_reference();
  bool depends_on_inputs(const std::map<std::string, DeviceMemory>& first);
  verify::Comparison compare(const Buffer& buffer, TypedAddress reference, bool exactly);
  std::vector<std::byte> download(const GuardedBuffer& buffer) const;
  void run_reference(std::byte poison);
  void launch_reference(std::byte poison);
  void poison_outputs(std::byte value, bool of_reference);
  static bool is_timed_clear(const Buffer& buffer, const BoundPlan& plan);
  std::vector<ZoneOnDevice> zones() const;
  std::string owner_of(verify::Zone zone) const;
  Buffer& find(const std::string& name);
  cuda::DevicePtr buffer_of_variant(const Parameter& parameter);
  cuda::DevicePtr buffer_of_reference(const Parameter& parameter);
  double scalar(const Parameter& parameter) const;
  void scale_scalars(double factor);
  std::uint64_t job_seed() const;
  double other_scalar() const;

  DriverContext& context_;
  MemoryBudget& budget_;
  OwnKernels& kernels_;
  v1::PrepareProblem request_;  // without the bytes of cubin, files and expected outputs, once those are used
  std::vector<Buffer> buffers_;
  LaunchPlan reference_plan_;
  std::unique_ptr<LoadedModule> reference_module_;
  std::optional<InputState> inputs_of_;  // at the first slot
  bool has_tried_to_part_ = false, are_parted_ = false;
  std::map<Placement, InputSet> kept_inputs_;  // where the placements are parted
  std::map<InputSet, std::vector<std::uint64_t>> input_hashes_;
  std::uint32_t slots_ = 0;        // 0: not made yet
  bool are_slots_filled_ = false;  // the further ones, with the inputs for timing
  std::uint64_t next_sample_ = 0;  // its number in this setup
  std::uint64_t sample_ = 0;       // the present one
  double scalar_factor_ = 1;
  std::byte poison_{0};  // of the variant's outputs
  /// Inputs and poison that the reference's outputs belong to.
  std::optional<std::pair<InputSet, std::byte>> reference_of_;
};

}  // namespace cubind::worker
