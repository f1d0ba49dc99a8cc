// How the inputs of a problem change for a verification after timing.
#include <algorithm>
#include <array>

#include "base/random.hpp"
#include "tuner/worker/fill.hpp"
#include "tuner/worker/problem_setup.hpp"

namespace cubind::worker {
namespace {

constexpr double kOtherConstant = 1.5;
constexpr int kSingleElements = 16;

// Of elements that change alike. Cheats take vectors and pieces of rows as samples.
constexpr std::array kGrainBits = {0, 1, 2, 3, 4, 5, 6, 8};
static_assert(kGrainBits.size() + 1 == ProblemSetup::kPatterns);

// All numbers are still ones that the fill may give.
void narrow(FillWork& work) {
  if (work.kind == FillKind::Normal) {
    work.b /= 2;
  } else if (work.kind == FillKind::Uniform) {
    const double quarter = (work.b - work.a) / 4;
    work.a += quarter;
    work.b -= quarter;
  }
}

}  // namespace

// An eighth of the elements, of any but the first and the last eighth. A constant has another value there: a
// source that takes one element for all is wrong. So is an untrusted one that knows mean and deviation.
void ProblemSetup::change_part(const Buffer& buffer, const InputSet& set) {
  const std::uint64_t elements = buffer.variant.elements();
  const std::uint64_t seed = mix_seeds(buffer.spec.seed(), set.seed);
  const std::uint64_t begin = elements / 8 + seed % std::max<std::uint64_t>(elements * 5 / 8, 1);
  const std::uint64_t count = std::min(std::max<std::uint64_t>(elements / 8, 1), elements);
  TypedAddress to = buffer.variant.typed();
  to.address += begin * size_of(to.type);
  FillWork work = plan_fill(buffer.spec.fill(), seed);
  if (work.kind == FillKind::Constant && is_floating(to.type)) {
    work.a *= kOtherConstant;
  } else if (set.change == Change::PartOfUntrusted && is_floating(to.type)) {
    narrow(work);
  }
  kernels_.fill(to, count, work);
}

void ProblemSetup::change_scattered(const Buffer& buffer, std::uint64_t pattern) {
  if (!has_independent_elements(buffer.spec.fill())) {
    return;
  }
  const bool is_number = is_floating(buffer.variant.type());
  FillWork work = plan_fill(buffer.spec.fill(), mix_seeds(buffer.spec.seed(), pattern));
  if (work.kind == FillKind::Constant) {
    if (is_number) {
      work.a *= kOtherConstant;
      change_single(buffer, work);
    }
    return;
  }
  if (is_number) {
    narrow(work);
  }
  work.grain_bits = kGrainBits.at(pattern - 1);
  work.pattern = mix_seeds(work.seed, pattern);
  kernels_.fill(buffer.variant.typed(), buffer.variant.elements(), work);
}

void ProblemSetup::change_single(const Buffer& buffer, const FillWork& work) {
  const TypedAddress all = buffer.variant.typed();
  Random random(work.seed);
  for (int i = 0; i < kSingleElements && buffer.variant.elements() > 0; ++i) {
    const std::uint64_t at = random.below(buffer.variant.elements());
    kernels_.fill({all.address + at * size_of(all.type), all.type}, 1, work);
  }
}

// A source that computes what an element must be is wrong. No number is new: an index stays in range.
void ProblemSetup::exchange_two(const Buffer& buffer, std::uint64_t input_seed) {
  const std::uint64_t elements = buffer.variant.elements();
  const TypedAddress all = buffer.variant.typed();
  if (buffer.spec.fill().kind() != "iota" || is_floating(all.type) || elements < 2) {
    return;
  }
  Random random(mix_seeds(buffer.spec.seed(), input_seed));
  const std::uint64_t one = random.below(elements);
  const std::uint64_t other = (one + 1 + random.below(elements - 1)) % elements;
  for (const auto& [to, from] : std::array{std::array{one, other}, std::array{other, one}}) {
    FillWork work = plan_fill(buffer.spec.fill(), 0);
    work.a += work.b * static_cast<double>(from);
    kernels_.fill({all.address + to * size_of(all.type), all.type}, 1, work);
  }
}

}  // namespace cubind::worker
