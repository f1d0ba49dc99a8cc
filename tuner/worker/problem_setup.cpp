#include "tuner/worker/problem_setup.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "launch/entry_symbols.hpp"
#include "plan/wire.hpp"
#include "tuner/verify/setup_memory.hpp"
#include "tuner/worker/fill.hpp"

namespace cubind::worker {
namespace {

// Buffers have numbers below 126 in their red zones, two for each buffer of the spec.
constexpr int kMaxBuffers = 60;

// Sixty-fourths of the value that a judged source's scalars have after timing: a probability stays one.
constexpr std::uint64_t kLeastOfScalar = 39, kMostOfScalar = 60;

bool is_written(v1::Role role) { return role != v1::IN; }
bool has_inputs(v1::Role role) { return role == v1::IN || role == v1::INOUT; }

// As clients pass it: null without elements.
cuda::DevicePtr pointer_to(const GuardedBuffer& buffer) { return buffer.bytes() == 0 ? 0 : buffer.address(); }

void set_bytes(const DriverContext& context, cuda::DevicePtr to, std::byte value, std::uint64_t bytes) {
  if (bytes == 0) {
    return;
  }
  cuda::check(context.api(),
              context.api().memset_d8_async(to, static_cast<unsigned char>(value), bytes, context.stream()),
              "memset");
}

}  // namespace

ProblemSetup::ProblemSetup(DriverContext& context, MemoryBudget& budget, OwnKernels& kernels,
                           const v1::PrepareProblem& request)
    : context_(context), budget_(budget), kernels_(kernels), request_(request) {
  if (request_.buffers_size() > kMaxBuffers) {
    throw Error(ErrorCode::InvalidArgument, "prepare.buffers",
                std::to_string(request_.buffers_size()) + " buffers; at most " + std::to_string(kMaxBuffers));
  }
  for (int i = 0; i < request_.buffers_size(); ++i) {
    add_buffer(request_.buffers(i), static_cast<std::uint32_t>(2 * i));
  }
  if (request_.reference() == "expected") {
    upload_expected();
  } else {
    reference_plan_ = plan_from_wire(request_.reference_plan(), "prepare.reference_plan");
    reference_module_ = std::make_unique<LoadedModule>(context_.api(), request_.reference_cubin(),
                                                       entry_symbols(reference_plan_), "the reference");
    request_.clear_reference_cubin();
  }
}

void ProblemSetup::add_buffer(const v1::BufferSpec& spec, std::uint32_t number) {
  const DType type = dtype_from_wire(spec.type(), "prepare.buffers[" + spec.name() + "].type");
  if (spec.role() == v1::ROLE_NONE) {
    throw Error(ErrorCode::InvalidArgument, "prepare.buffers[" + spec.name() + "].role",
                "a buffer needs one");
  }
  Buffer buffer{spec, GuardedBuffer(budget_, spec, type, number), std::nullopt, {}, {}, std::nullopt};
  if (is_written(spec.role()) && request_.reference() != "expected") {
    // It stays where it is: what the reference made outlives the moves of the variant's buffers.
    buffer.reference.emplace(budget_, spec, type, number + 1);
    buffer.reference->move(Placement::Minimal);
  }
  if (spec.role() == v1::INOUT) {
    buffer.pristine = DeviceMemory(budget_, buffer.variant.bytes());
  }
  buffers_.push_back(std::move(buffer));
}

void ProblemSetup::upload_expected() {
  for (const v1::ExpectedOutput& output : request_.expected()) {
    Buffer& buffer = find(output.name());
    const DType type = dtype_from_wire(output.type(), "prepare.expected[" + output.name() + "].type");
    if (output.data().size() != buffer.variant.elements() * size_of(type)) {
      throw Error(ErrorCode::InvalidArgument, "prepare.expected[" + output.name() + "].data",
                  std::to_string(output.data().size()) + " bytes for " +
                      std::to_string(buffer.variant.elements()) + " elements of " + output.type());
    }
    buffer.expected = DeviceMemory(budget_, output.data().size());
    buffer.expected_type = type;
    if (output.data().empty()) {
      continue;
    }
    cuda::check(
        context_.api(),
        context_.api().memcpy_htod(buffer.expected.address(), output.data().data(), output.data().size()),
        "upload of an expected output");
  }
  request_.clear_expected();
}

ProblemSetup::Buffer& ProblemSetup::find(const std::string& name) {
  const auto found =
      std::ranges::find_if(buffers_, [&](const Buffer& buffer) { return buffer.variant.name() == name; });
  if (found == buffers_.end()) {
    throw Error(ErrorCode::InvalidArgument, "setup " + std::to_string(request_.setup()),
                "has no buffer \"" + name + "\"");
  }
  return *found;
}

// ---- Inputs and reference ----

void ProblemSetup::prepare_verification(std::uint64_t input_seed) {
  scale_scalars(1);
  make_inputs({{input_seed}, Placement::Minimal});
  // Outputs that were recorded belong to the inputs of the spec's own seeds.
  if (request_.reference() != "expected") {
    repeat_reference(verify::kFirstPoison);
  }
}

void ProblemSetup::prepare_verification_in_place(std::uint64_t input_seed, bool whole, bool untrusted) {
  scale_scalars(untrusted ? other_scalar() : 1);
  const Change part = untrusted ? Change::PartOfUntrusted : Change::Part;
  make_inputs({{input_seed, whole ? Change::All : part}, Placement::Aligned});
  if (request_.reference() != "expected") {
    repeat_reference(verify::kFirstPoison);
  }
}

void ProblemSetup::prepare_verification_scattered(std::uint64_t pattern) {
  scale_scalars(1);
  make_inputs({pattern == 0 ? InputSet{} : InputSet{pattern, Change::Scattered}, Placement::Aligned});
  repeat_reference(verify::kFirstPoison);
}

bool ProblemSetup::has_partial_outputs() const {
  return request_.reference() != "expected" &&
         std::ranges::any_of(buffers_, [](const Buffer& buffer) { return buffer.spec.partial(); });
}

void ProblemSetup::repeat_reference(std::byte poison) {
  const std::pair wanted(inputs_of_.value().set, poison);
  if (reference_of_ != wanted) {
    run_reference(poison);
    reference_of_ = wanted;
  }
}

void ProblemSetup::prepare_timing() {
  scale_scalars(1);
  part_inputs();
  make_inputs({{}, Placement::Aligned});
  make_slots();
  for (std::uint32_t slot = 1; slot < slots_ && !are_slots_filled_; ++slot) {
    fill_slot(slot);
  }
  are_slots_filled_ = true;
  for (Buffer& buffer : buffers_) {
    buffer.variant.move(Placement::Aligned);
  }
}

std::uint32_t ProblemSetup::slot_of(std::uint32_t buffer, std::uint64_t sample) const {
  return verify::slot_at(static_cast<std::uint32_t>(sample % (slots_ * slots_)), buffer, slots_);
}

void ProblemSetup::move_to_sample(std::uint64_t sample) {
  sample_ = sample;
  for (std::uint32_t i = 0; i < buffers_.size(); ++i) {
    buffers_[i].variant.move(Placement::Aligned, slot_of(i, sample));
  }
}

void ProblemSetup::next_slot() { move_to_sample(next_sample_++); }

// Configurations may still need memory for their scratch.
std::uint64_t ProblemSetup::spare_bytes() const {
  const std::uint64_t taken = std::min(budget_.taken_bytes(), budget_.limit_bytes());
  return (budget_.limit_bytes() - taken) / 4;
}

// Verifying and timing trials take turns: in the same memory each makes its inputs again. They still do so
// where memory is short, and where an inout buffer has its content restored from one copy.
void ProblemSetup::part_inputs() {
  if (std::exchange(has_tried_to_part_, true)) {
    return;
  }
  std::uint64_t bytes = 0;
  for (const Buffer& buffer : buffers_) {
    if (buffer.variant.role() == v1::INOUT) {
      return;
    }
    bytes += buffer.variant.role() == v1::IN ? verify::guarded_bytes(buffer.variant.bytes()) : 0;
  }
  if (bytes > spare_bytes()) {
    return;
  }
  inputs_of_.reset();
  are_parted_ = allocates([this] {
    for (Buffer& buffer : buffers_) {
      if (buffer.variant.role() == v1::IN) {
        buffer.variant.part_placements(budget_);
      }
    }
  });
}

// One slot is no fault.
void ProblemSetup::make_slots() {
  if (slots_ > 0) {
    return;
  }
  const auto set_all = [this](std::uint32_t further) {
    for (Buffer& buffer : buffers_) {
      if (buffer.variant.role() != v1::SCRATCH) {
        buffer.variant.set_further_slots(budget_, further);
      }
    }
    slots_ = 1 + further;
  };
  if (!allocates([&] { set_all(verify::timing_slots(request_, spare_bytes()) - 1); })) {
    set_all(0);
  }
}

void ProblemSetup::fill_slot(std::uint32_t slot) {
  for (Buffer& buffer : buffers_) {
    buffer.variant.move(Placement::Aligned);
    const cuda::DevicePtr first = buffer.variant.address();
    buffer.variant.move(Placement::Aligned, slot);
    if (has_inputs(buffer.variant.role())) {
      context_.copy(buffer.variant.address(), first, buffer.variant.bytes());
    }
  }
}

void ProblemSetup::make_inputs(InputState wanted) {
  if (request_.reference() == "expected") {
    wanted.set = {};
  }
  for (Buffer& buffer : buffers_) {
    buffer.variant.move(wanted.placement);
  }
  if (inputs_of_ == wanted) {
    return;
  }
  if (has_kept(wanted)) {
    inputs_of_ = wanted;
    return;
  }
  inputs_of_.reset();
  kept_inputs_.erase(wanted.placement);
  for (Buffer& buffer : buffers_) {
    if (has_inputs(buffer.variant.role())) {
      make_input(buffer, wanted.set);
    }
  }
  kernels_.paint(zones());
  if (!input_hashes_.contains(wanted.set)) {
    input_hashes_[wanted.set] = hash_inputs();
  }
  context_.synchronize("generation of the inputs");
  inputs_of_ = wanted;
  if (are_parted_) {
    kept_inputs_[wanted.placement] = wanted.set;
  }
}

// A run with the other inputs may have written to these, far outside of its own buffers, unchecked.
bool ProblemSetup::has_kept(const InputState& wanted) {
  const auto kept = kept_inputs_.find(wanted.placement);
  return kept != kept_inputs_.end() && kept->second == wanted.set &&
         hash_inputs() == input_hashes_.at(wanted.set);
}

void ProblemSetup::make_input(Buffer& buffer, const InputSet& set) {
  if (set.change == Change::Scattered) {
    fill_input(buffer, 0);
    change_scattered(buffer, set.seed);
  } else if (set.change != Change::All && has_independent_elements(buffer.spec.fill())) {
    fill_input(buffer, 0);
    change_part(buffer, set);
  } else {
    fill_input(buffer, set.seed);
  }
  if (set.change == Change::PartOfUntrusted) {
    exchange_two(buffer, set.seed);
  }
  if (buffer.variant.role() == v1::INOUT) {
    context_.copy(buffer.pristine.address(), buffer.variant.address(), buffer.variant.bytes());
  }
}

void ProblemSetup::fill_input(Buffer& buffer, std::uint64_t input_seed) {
  const std::uint64_t seed = mix_seeds(buffer.spec.seed(), input_seed);
  const TypedAddress to = buffer.variant.typed();
  if (!is_host_fill(buffer.spec.fill())) {
    kernels_.fill(to, buffer.variant.elements(), plan_fill(buffer.spec.fill(), seed));
  } else if (buffer.uploaded.bytes() > 0 && hash_of_uploaded(buffer) == buffer.uploaded_hash) {
    context_.copy(to.address, buffer.uploaded.address(), buffer.variant.bytes());
  } else {
    upload(buffer, seed);
  }
}

void ProblemSetup::upload(Buffer& buffer, std::uint64_t seed) {
  const TypedAddress to = buffer.variant.typed();
  const HostContent content = fill_on_host(buffer.spec.fill(), to.type, buffer.variant.elements(), seed);
  if (content.bytes.empty()) {
    return;
  }
  cuda::check(context_.api(),
              context_.api().memcpy_htod(to.address, content.bytes.data(), content.bytes.size()),
              "upload of a fill");
  if (buffer.spec.fill().kind() == "file") {
    keep_uploaded(buffer);
  }
}

// A file has the same content for all inputs, and may have gigabytes. A run may write to the copy, too.
void ProblemSetup::keep_uploaded(Buffer& buffer) {
  if (buffer.uploaded.bytes() == 0) {
    if (buffer.variant.bytes() > spare_bytes()) {
      return;
    }
    if (!allocates([&] { buffer.uploaded = DeviceMemory(budget_, buffer.variant.bytes()); })) {
      return;
    }
  }
  context_.copy(buffer.uploaded.address(), buffer.variant.address(), buffer.variant.bytes());
  buffer.uploaded_hash = hash_of_uploaded(buffer);
}

std::uint64_t ProblemSetup::hash_of_uploaded(const Buffer& buffer) {
  return kernels_.hash({{buffer.uploaded.address(), buffer.variant.bytes()}}).front();
}

void ProblemSetup::run_reference(std::byte poison) {
  launch_reference(poison);
  if (const auto damage = find_damage()) {
    throw Error(ErrorCode::FailedPrecondition, "the reference is broken", *damage);
  }
}

void ProblemSetup::launch_reference(std::byte poison) {
  reference_of_.reset();
  const BoundPlan plan(
      *reference_module_, reference_plan_,
      [this](const Parameter& parameter) { return buffer_of_reference(parameter); },
      [this](const Parameter& parameter) { return scalar(parameter); }, context_.stream());
  poison_outputs(poison, true);
  kernels_.paint(zones());
  plan.enqueue(context_.stream());
  context_.synchronize("the reference");
}

// ---- Runs of a variant ----

void ProblemSetup::poison(std::byte value) {
  poison_ = value;
  poison_outputs(value, false);
  kernels_.paint(zones());
}

void ProblemSetup::make_stale() {
  poison(verify::kFirstPoison);
  const FillWork results{.kind = FillKind::Uniform, .a = 1, .b = 3, .seed = 1, .cumulative = {}};
  for (const Buffer& buffer : buffers_) {
    if (buffer.variant.role() == v1::OUT && !buffer.spec.partial()) {
      kernels_.fill(buffer.variant.typed(), buffer.variant.elements(), results);
    }
  }
}

void ProblemSetup::poison_outputs(std::byte value, bool of_reference) {
  for (Buffer& buffer : buffers_) {
    if (!is_written(buffer.variant.role())) {
      continue;
    }
    if (of_reference && !buffer.reference) {
      continue;
    }
    const GuardedBuffer& target = of_reference ? *buffer.reference : buffer.variant;
    switch (target.role()) {
      case v1::INOUT:
        context_.copy(target.address(), buffer.pristine.address(), target.bytes());
        break;
      case v1::ZERO:
        set_bytes(context_, target.address(), std::byte{0}, target.bytes());
        break;
      default:
        set_bytes(context_, target.address(), value, target.bytes());
        break;
    }
  }
}

void ProblemSetup::restore() {
  for (Buffer& buffer : buffers_) {
    const GuardedBuffer& target = buffer.variant;
    if (target.role() == v1::INOUT) {
      context_.copy(target.address(), buffer.pristine.address(), target.bytes());
    } else if (target.role() == v1::ZERO && !buffer.spec.timed_zero()) {
      set_bytes(context_, target.address(), std::byte{0}, target.bytes());
    }
  }
}

bool ProblemSetup::needs_restore() const {
  return std::ranges::any_of(buffers_, [](const Buffer& buffer) {
    const v1::Role role = buffer.variant.role();
    return role == v1::INOUT || (role == v1::ZERO && !buffer.spec.timed_zero());
  });
}

bool ProblemSetup::is_timed_clear(const Buffer& buffer, const BoundPlan& plan) {
  return buffer.variant.role() == v1::ZERO && buffer.spec.timed_zero() && buffer.variant.bytes() > 0 &&
         plan.cleared().contains(buffer.variant.name());
}

void ProblemSetup::clear_timed(const BoundPlan& plan) {
  for (Buffer& buffer : buffers_) {
    if (is_timed_clear(buffer, plan)) {
      kernels_.clear(buffer.variant.address(), buffer.variant.bytes());
    }
  }
}

unsigned ProblemSetup::timed_clears(const BoundPlan& plan) const {
  return static_cast<unsigned>(
      std::ranges::count_if(buffers_, [&](const Buffer& buffer) { return is_timed_clear(buffer, plan); }));
}

BoundPlan ProblemSetup::bind(const LoadedModule& module, const LaunchPlan& plan) {
  return {module, plan, [this](const Parameter& parameter) { return buffer_of_variant(parameter); },
          [this](const Parameter& parameter) { return scalar(parameter); }, context_.stream()};
}

cuda::DevicePtr ProblemSetup::buffer_of_variant(const Parameter& parameter) {
  Buffer& buffer = find(parameter.name);
  if (buffer.variant.role() == v1::SCRATCH) {
    buffer.variant.fit(budget_, parameter.extent_bytes);
  } else if (buffer.variant.bytes() != parameter.extent_bytes) {
    throw Error(ErrorCode::InvalidArgument, "parameter " + parameter.name,
                "the plan wants " + std::to_string(parameter.extent_bytes) + " bytes, the setup has " +
                    std::to_string(buffer.variant.bytes()));
  }
  return pointer_to(buffer.variant);
}

cuda::DevicePtr ProblemSetup::buffer_of_reference(const Parameter& parameter) {
  Buffer& buffer = find(parameter.name);
  if (!buffer.reference) {
    return pointer_to(buffer.variant);
  }
  if (buffer.variant.role() == v1::SCRATCH) {
    buffer.reference->fit(budget_, parameter.extent_bytes);
  }
  return pointer_to(*buffer.reference);
}

void ProblemSetup::scale_scalars(double factor) {
  if (std::exchange(scalar_factor_, factor) != factor) {
    reference_of_.reset();
  }
}

// Each job draws its own.
std::uint64_t ProblemSetup::job_seed() const {
  return request_.buffers().empty() ? 0 : request_.buffers(0).seed();
}

double ProblemSetup::other_scalar() const {
  const std::uint64_t steps = kMostOfScalar - kLeastOfScalar + 1;
  return static_cast<double>(kLeastOfScalar + mix_seeds(job_seed(), kMostOfScalar) % steps) / 64;
}

double ProblemSetup::scalar(const Parameter& parameter) const {
  for (const v1::CallerScalar& scalar : request_.scalars()) {
    if (scalar.name() == parameter.name) {
      return is_floating(parameter.type) ? scalar_factor_ * scalar.value() : scalar.value();
    }
  }
  throw Error(ErrorCode::InvalidArgument, "setup " + std::to_string(request_.setup()),
              "has no value for the caller's scalar \"" + parameter.name + "\"");
}

}  // namespace cubind::worker
