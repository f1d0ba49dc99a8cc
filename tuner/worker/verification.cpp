#include "tuner/worker/verification.hpp"

#include <array>
#include <cstdio>
#include <vector>

#include "plan/wire.hpp"

namespace cubind::worker {

std::string explain(const OutputComparison& output) {
  std::array<char, 160> text{};
  std::snprintf(text.data(), text.size(),
                "[%llu] departs by %.4g times the tolerance; %llu of %llu elements are wrong",
                static_cast<unsigned long long>(output.result.worst_index), output.result.worst_excess,
                static_cast<unsigned long long>(output.result.mismatches),
                static_cast<unsigned long long>(output.result.elements));
  return output.output + text.data();
}

namespace {

void take(const OutputComparison& output, v1::VerificationResult& result) {
  result.set_mismatches(result.mismatches() + output.result.mismatches);
  if (!output.result.passed() && result.outcome() == v1::CORRECT) {
    result.set_outcome(v1::WRONG_RESULT);
    result.set_detail(explain(output));
  }
  if (output.result.worst_excess > result.worst_excess() || result.worst_output().empty()) {
    result.set_worst_excess(output.result.worst_excess);
    result.set_worst_output(output.output);
    result.set_worst_index(output.result.worst_index);
  }
}

// Over outputs that are poisoned or stale; not compared.
void run(GpuSession& session, ProblemSetup& setup, const BoundPlan& plan, v1::VerificationResult& result) {
  plan.enqueue(session.context().stream());
  session.context().synchronize("the variant");
  if (const auto damage = setup.find_damage()) {
    result.set_outcome(v1::WRONG_RESULT);
    result.set_detail(*damage);
  }
}

void compare_outputs(ProblemSetup& setup, v1::VerificationResult& result) {
  for (const OutputComparison& output : setup.compare_outputs()) {
    take(output, result);
  }
}

// Whether a run from this poison gives the bits of the first run.
bool repeats(GpuSession& session, ProblemSetup& setup, const BoundPlan& plan, std::byte poison,
             const std::vector<std::uint64_t>& first, v1::VerificationResult& result) {
  setup.poison(poison);
  run(session, setup, plan, result);
  return result.outcome() == v1::CORRECT && setup.output_hashes() == first;
}

// Runs from the other poison: an integer output that is never written has another value now. Outputs with the
// same bits as in the first run need no comparison. Where elements may be left alone the reference starts
// from that poison too, and whether bits repeat is seen by a third run, from the first one.
void run_again(GpuSession& session, ProblemSetup& setup, const BoundPlan& plan,
               const std::vector<std::uint64_t>& first, v1::VerificationResult& result) {
  if (repeats(session, setup, plan, verify::kSecondPoison, first, result)) {
    result.set_same_bits(true);
    return;
  }
  if (result.outcome() != v1::CORRECT) {
    return;
  }
  if (setup.has_partial_outputs()) {
    setup.repeat_reference(verify::kSecondPoison);
  }
  compare_outputs(setup, result);
  if (setup.has_partial_outputs() && result.outcome() == v1::CORRECT) {
    result.set_same_bits(repeats(session, setup, plan, verify::kFirstPoison, first, result));
  }
}

// A race shows only in some launches. Each has the inputs and the poison of the first one.
void run_often(GpuSession& session, ProblemSetup& setup, const BoundPlan& plan, std::uint32_t launches,
               const std::vector<std::uint64_t>& first, v1::VerificationResult& result) {
  while (result.outcome() == v1::CORRECT && result.launches() < launches) {
    result.set_launches(result.launches() + 1);
    if (repeats(session, setup, plan, verify::kFirstPoison, first, result)) {
      continue;
    }
    result.set_same_bits(false);
    if (result.outcome() == v1::CORRECT) {
      if (setup.has_partial_outputs()) {
        setup.repeat_reference(verify::kFirstPoison);
      }
      compare_outputs(setup, result);
    }
  }
  if (result.outcome() != v1::CORRECT) {
    result.set_detail("right at " + std::to_string(result.launches() - 1) +
                      " launches, wrong at the next one, with the same inputs: " + result.detail());
  }
}

// A read behind a buffer's end changes nothing where other memory lies there.
void run_fenced(GpuSession& session, ProblemSetup& setup, const LoadedModule& module, const LaunchPlan& plan,
                v1::VerificationResult& result) {
  try {
    if (!setup.run_fenced(module, plan)) {
      return;
    }
  } catch (const cuda::DriverError& error) {
    if (error.result() != cuda::Result::IllegalAddress) {
      throw;
    }
    throw cuda::DriverError(
        session.context().api(), error.result(),
        "reads or writes outside of its buffers: with each buffer at the end of its memory");
  }
  if (setup.has_partial_outputs()) {
    setup.repeat_reference(verify::kFirstPoison);
  }
  compare_outputs(setup, result);
  if (result.outcome() != v1::CORRECT) {
    result.set_detail("with each buffer at the end of its memory: " + result.detail());
  }
}

// Of an untrusted source: first on the inputs of its timing, as the last round may have reset its variables.
// What it keeps then is wrong at the next pattern.
void run_scattered(GpuSession& session, ProblemSetup& setup, const LoadedModule& module,
                   const LaunchPlan& plan, v1::VerificationResult& result) {
  for (std::uint64_t pattern = 0; pattern < ProblemSetup::kPatterns; ++pattern) {
    setup.prepare_verification_scattered(pattern);
    const BoundPlan bound = setup.bind(module, plan);
    setup.poison(verify::kFirstPoison);
    run(session, setup, bound, result);
    if (result.outcome() == v1::CORRECT) {
      compare_outputs(setup, result);
    }
    if (result.outcome() != v1::CORRECT) {
      result.set_detail(
          (pattern == 0 ? "on the inputs of its timing: " : "with other values of scattered elements: ") +
          result.detail());
      return;
    }
  }
}

double passing_share(const verify::Comparison& result) {
  return result.elements == 0
             ? 0
             : 1 - static_cast<double>(result.mismatches) / static_cast<double>(result.elements);
}

// How much of the outputs the tolerance lets a source leave out. Elements that must be 0 are none of it.
void compare_blank(ProblemSetup& setup, v1::VerificationResult& result) {
  setup.poison_blank();
  const std::vector<OutputComparison> within = setup.compare_outputs(), equal = setup.compare_outputs(true);
  for (std::size_t i = 0; i < within.size(); ++i) {
    const double share = passing_share(within[i].result) - passing_share(equal[i].result);
    if (share > result.blank_share()) {
      result.set_blank_share(share);
      result.set_blank_output(within[i].output);
    }
  }
}

// With the inputs and the reference's outputs that are there.
void run_prepared(GpuSession& session, ProblemSetup& setup, const LoadedModule& module,
                  const v1::VerifyTrial& request, bool in_place, v1::VerificationResult& result) {
  const LaunchPlan launches = plan_from_wire(request.plan(), "verify.plan");
  const BoundPlan plan = setup.bind(module, launches);
  if (in_place) {
    setup.make_stale();
  } else {
    setup.poison(verify::kFirstPoison);
  }
  run(session, setup, plan, result);
  if (result.outcome() == v1::CORRECT) {
    compare_outputs(setup, result);
  }
  if (!request.check_same_bits() || result.outcome() != v1::CORRECT) {
    return;
  }
  const std::vector<std::uint64_t> first = setup.output_hashes();
  run_again(session, setup, plan, first, result);
  if (request.launches() == 0 || result.outcome() != v1::CORRECT) {
    return;
  }
  result.set_launches(2);
  run_often(session, setup, plan, request.launches(), first, result);
  if (result.outcome() == v1::CORRECT) {
    run_fenced(session, setup, module, launches, result);
  }
  if (result.outcome() == v1::CORRECT) {
    compare_blank(setup, result);
  }
}

}  // namespace

v1::VerificationResult verify_variant(GpuSession& session, ProblemSetup& setup, const LoadedModule& module,
                                      const v1::VerifyTrial& request) {
  v1::VerificationResult result;
  *result.mutable_problem() = setup.request().problem();
  result.set_reference(setup.request().reference());
  result.set_after_timing(request.after_timing());
  result.set_outcome(v1::CORRECT);

  const bool in_place = request.after_timing() && setup.is_timed();
  const bool untrusted = request.launches() > 0;
  if (in_place && untrusted && setup.request().reference() != "expected") {
    run_scattered(session, setup, module, plan_from_wire(request.plan(), "verify.plan"), result);
  }
  if (result.outcome() == v1::CORRECT) {
    if (in_place) {
      // What is hashed is compared with the hash of another problem, where other parts would have changed.
      setup.prepare_verification_in_place(request.input_seed(), request.hashed_size() > 0, untrusted);
    } else {
      setup.prepare_verification(request.input_seed());
    }
    run_prepared(session, setup, module, request, in_place, result);
  }
  if (result.outcome() != v1::CORRECT) {
    setup.distrust();
  }
  session.worked();
  return result;
}

}  // namespace cubind::worker
