// What an untrusted source needs of the buffers of a problem.
#include <algorithm>

#include "base/random.hpp"
#include "tuner/worker/fenced_memory.hpp"
#include "tuner/worker/fill.hpp"
#include "tuner/worker/problem_setup.hpp"

namespace cubind::worker {

bool ProblemSetup::is_renewed(const Buffer& buffer) const {
  const v1::Role role = buffer.variant.role();
  return request_.reference() != "expected" && (role == v1::IN || role == v1::INOUT) &&
         buffer.variant.bytes() > 0 && has_independent_elements(buffer.spec.fill());
}

// An inout buffer gets its content before each sample anyway, from the pristine copy.
void ProblemSetup::renew_inputs(std::uint64_t seed) {
  for (const Buffer& buffer : buffers_) {
    if (is_renewed(buffer)) {
      TypedAddress to = buffer.variant.typed();
      if (buffer.variant.role() == v1::INOUT) {
        to.address = buffer.pristine.address();
      }
      kernels_.fill(to, buffer.variant.elements(),
                    plan_fill(buffer.spec.fill(), mix_seeds(buffer.spec.seed(), mix_seeds(seed, sample_))));
    }
  }
}

unsigned ProblemSetup::renewals() const {
  return static_cast<unsigned>(
      std::ranges::count_if(buffers_, [this](const Buffer& buffer) { return is_renewed(buffer); }));
}

void ProblemSetup::renew_slots(std::uint64_t seed) {
  for (std::uint32_t i = 0; i < slots_; ++i) {
    next_slot();
    renew_inputs(seed);
  }
}

void ProblemSetup::forget_renewed() {
  inputs_of_.reset();
  kept_inputs_.erase(Placement::Aligned);
  are_slots_filled_ = false;
}

// A source that counts its launches does not know which of them will be looked at.
DrawnSample ProblemSetup::draw(std::uint32_t samples) const {
  const auto back = static_cast<std::uint32_t>(Random(mix_seeds(job_seed(), next_sample_)).below(samples));
  return back < slots_ ? DrawnSample{samples, back} : DrawnSample{samples - back, 0};
}

bool ProblemSetup::is_overwritten(std::uint64_t sample) const {
  for (std::uint64_t later = sample + 1; later < next_sample_; ++later) {
    for (std::uint32_t i = 0; i < buffers_.size(); ++i) {
      if (buffers_[i].variant.role() != v1::SCRATCH && slot_of(i, later) == slot_of(i, sample)) {
        return true;
      }
    }
  }
  return false;
}

void ProblemSetup::return_to(std::uint32_t back) {
  const std::uint64_t last = next_sample_ - 1;
  move_to_sample(is_overwritten(last - back) ? last : last - back);
}

std::optional<std::string> ProblemSetup::find_changed_input(std::uint64_t seed) {
  std::vector<std::uint64_t> made = input_hashes_.at(inputs_of_.value().set);
  const std::vector<std::uint64_t> found = hash_inputs();
  if (seed != 0) {
    renew_inputs(seed);
    const std::vector<std::uint64_t> renewed = hash_inputs();
    const std::vector<const Buffer*> all = inputs();
    for (std::size_t i = 0; i < all.size(); ++i) {
      made[i] = is_renewed(*all[i]) ? renewed[i] : made[i];
    }
  }
  return changed_input(made, found);
}

bool ProblemSetup::run_fenced(const LoadedModule& module, const LaunchPlan& plan) {
  std::map<std::string, FencedMemory> fenced;
  const auto allocate = [&] {
    for (const Buffer& buffer : buffers_) {
      if (buffer.variant.bytes() > 0) {
        fenced.try_emplace(buffer.variant.name(), budget_, buffer.variant.bytes(), buffer.variant.align());
      }
    }
  };
  if (!allocates(allocate)) {
    return false;
  }
  poison(verify::kFirstPoison);
  for (const auto& [name, memory] : fenced) {
    const GuardedBuffer& variant = find(name).variant;
    context_.copy(memory.address(), variant.address(), variant.bytes());
  }
  const auto address_of = [&fenced](const Parameter& parameter) {
    const auto found = fenced.find(parameter.name);
    return found == fenced.end() ? 0 : found->second.address();
  };
  const BoundPlan bound(
      module, plan, address_of, [this](const Parameter& parameter) { return scalar(parameter); },
      context_.stream());
  bound.enqueue(context_.stream());
  context_.synchronize("with each buffer at the end of its memory");
  for (const auto& [name, memory] : fenced) {
    const GuardedBuffer& variant = find(name).variant;
    if (variant.role() != v1::IN) {
      context_.copy(variant.address(), memory.address(), variant.bytes());
    }
  }
  context_.synchronize("copies of the outputs");
  return true;
}

void ProblemSetup::poison_timed() {
  poison_ = verify::kFirstPoison;
  poison_outputs(poison_, false);
}

std::vector<OutputComparison> ProblemSetup::compare_timed() {
  if (request_.reference() != "expected") {
    launch_reference(poison_);
  }
  return compare_outputs();
}

}  // namespace cubind::worker
