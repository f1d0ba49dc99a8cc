#include "client/cubindctl/answers/audit.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "client/cubindctl/answers/comparison_output.hpp"
#include "client/cubindctl/report/report_commands.hpp"
#include "client/cubindctl/terminal/text_table.hpp"

namespace cubind::ctl {
namespace {

// A share of the roofline below this is worth a look; most tuned kernels of the library are above it.
constexpr double kFairRooflineShare = 0.5;

class Auditing {
 public:
  explicit Auditing(const AuditInput& input)
      : input_(input), record_(input.record), explanation_(input.explanation) {}

  std::vector<AuditLine> run() && {
    add_reference();
    add_tails();
    add_bits();
    add_failures();
    add_gain();
    add_library();
    add_roofline();
    add_resources();
    add_conditions();
    add_freshness();
    add_coverage();
    return std::move(lines_);
  }

 private:
  void add(const char* check, Verdict verdict, std::string evidence) {
    lines_.push_back({check, verdict, std::move(evidence)});
  }

  const ExplainedTrial* timed(bool ExplainedTrial::*which) const {
    const auto found = std::ranges::find(explanation_.timed, true, which);
    return found == explanation_.timed.end() ? nullptr : &*found;
  }

  void add_reference() {
    const VerificationSummary& verification = record_.verification;
    const std::string error = "worst error " + fixed(verification.worst_excess(), 3) + " of the tolerance";
    if (!verification.verified()) {
      add("reference", Verdict::Fail, "the results were compared with nothing: give the spec a reference");
    } else if (verification.reference() != "kernel") {
      add("reference", Verdict::Fail,
          "the reference is the kernel's own default configuration (" + error +
              "), so a fault of all configurations passes: give the spec a reference kernel");
    } else {
      add("reference", Verdict::Ok, "compared with the reference kernel, " + error);
    }
  }

  bool has_bucket() const {
    return std::ranges::any_of(input_.spec.bucket(record_.context.problem),
                               [](const BucketRule::Interval& one) { return one.lower < one.upper; });
  }

  void add_tails() {
    std::vector<std::string> others;
    for (const v1::Problem& verified : record_.verification.problems()) {
      const Problem problem = problem_from_wire(verified, "problem");
      if (problem != record_.context.problem) {
        others.push_back(cubind::to_string(problem));
      }
    }
    if (!others.empty()) {
      add("tails", Verdict::Ok, "also compared at " + join(others, "; "));
    } else if (!has_bucket()) {
      add("tails", Verdict::Ok, "it answers for this problem alone");
    } else {
      add("tails", Verdict::Fail,
          "other problems of its bucket were not compared: " + retune() + " compares them");
    }
  }

  /// The command that measures the record again.
  std::string retune() const {
    const TableContext& context = record_.context;
    const ExplainedQuestion question{context.kernel, context.problem, context.policy, record_.numerics,
                                     record_.name_space};
    return "`" + tune_command(question, explanation_.device, true) + "`";
  }

  void add_bits() {
    const bool same = record_.verification.same_bits();
    add("same bits", same ? Verdict::Ok : Verdict::Note,
        same ? "two runs gave the same bits"
             : "two runs gave other bits: a caller that needs the same asks with --reproducible");
  }

  void add_failures() {
    if (explanation_.trials == 0) {
      add("other configurations", Verdict::Note, "unknown: no trial of the problem is stored");
      return;
    }
    const auto wrong = std::ranges::count_if(
        explanation_.failed, [](const TableTrial* trial) { return trial->outcome == Outcome::WrongResult; });
    add("other configurations", wrong > 0 ? Verdict::Note : Verdict::Ok,
        wrong > 0 ? std::to_string(wrong) + " of " + std::to_string(explanation_.trials) +
                        " gave wrong results: `cubindctl explain` lists them"
                  : "none of " + std::to_string(explanation_.trials) + " gave wrong results");
  }

  // The default's time over the winner's in the same rounds.
  std::optional<RoundRatio> default_to_winner() const {
    for (const ExplainedFinalist& finalist : explanation_.finalists) {
      if (explanation_.timed[finalist.trial].is_default) {
        return finalist.to_winner;
      }
    }
    return std::nullopt;
  }

  void add_gain() {
    const ExplainedTrial* winner = timed(&ExplainedTrial::is_winner);
    if (winner && winner->is_default) {
      add("gain", Verdict::Ok, "the default configuration is the best");
    } else if (const auto ratio = default_to_winner()) {
      const ConfidenceInterval& range = ratio->interval;
      const std::string text = fixed(ratio->ratio, 2) + " x over the default (" + fixed(range.low, 2) +
                               " to " + fixed(range.high, 2) + " at 99 %)";
      const bool tie = range.low <= 1;
      add("gain", tie ? Verdict::Note : Verdict::Ok, tie ? text + ": it may be none" : text);
    } else if (const auto gain = over_default(record_.timing)) {
      add("gain", Verdict::Ok, fixed(*gain, 2) + " x over the default");
    } else {
      add("gain", Verdict::Note, "the default was not measured with it");
    }
  }

  void add_library() {
    if (record_.over_library.empty()) {
      add("gain over library", Verdict::Note,
          "unknown: `python -m cubind.torch compare --kernel " + record_.context.kernel +
              "` compares kernels of PyTorch operators");
      return;
    }
    const LibraryComparison& latest = record_.over_library.back();
    const std::string text = over_library(latest);
    if (latest.gain_high() < 1) {
      add("gain over library", Verdict::Fail, text + ": the library is faster");
    } else if (latest.gain_low() <= 1) {
      add("gain over library", Verdict::Note, text + ": it may be none");
    } else {
      add("gain over library", Verdict::Ok, text);
    }
  }

  void add_roofline() {
    const ExplainedTrial* winner = timed(&ExplainedTrial::is_winner);
    if (!winner || !winner->roofline_share) {
      add("roofline", Verdict::Note,
          !explanation_.work.bytes && !explanation_.work.flops
              ? "unknown: the spec does not say the kernel's \"work\""
              : "unknown: the winner's trial or the GPU's clocks are not stored");
      return;
    }
    const double share = *winner->roofline_share;
    add("roofline", share < kFairRooflineShare ? Verdict::Note : Verdict::Ok,
        percent(share, 0) + " of what the GPU's peak rates allow");
  }

  void add_resources() {
    const ExplainedTrial* winner = timed(&ExplainedTrial::is_winner);
    if (!winner) {
      add("resources", Verdict::Note, "unknown: the winner's trial is not stored");
      return;
    }
    const std::string registers = std::to_string(winner->registers) + " registers, tensor cores " +
                                  (winner->tensor_cores ? "in use" : "not in use");
    if (winner->spilled_bytes > 0) {
      add("resources", Verdict::Note,
          registers + ", " + std::to_string(winner->spilled_bytes) + " bytes of registers spill to memory");
    } else {
      add("resources", Verdict::Ok, registers + ", no spills");
    }
  }

  void add_conditions() {
    const Timing& timing = record_.timing;
    std::vector<std::string> doubts;
    if (record_.evidence != Evidence::Measured) {
      doubts.push_back("it is " + std::string(cubind::to_string(record_.evidence)) + ", not measured here");
    }
    if (record_.provisional || timing.contended()) {
      doubts.emplace_back("other processes used the GPU meanwhile");
    }
    if (timing.throttled()) {
      doubts.emplace_back("the GPU was throttled");
    }
    const std::string text = fixed(timing.median_us(), 2) + " us from " + std::to_string(timing.samples()) +
                             " samples, driver " + record_.context.driver + ", " +
                             record_.context.toolchain.name;
    if (doubts.empty()) {
      add("measurement", Verdict::Ok, text);
    } else {
      add("measurement", Verdict::Fail,
          text + "; " + join(doubts, "; ") +
              (record_.evidence == Evidence::Replayed ? "" : ": " + retune() + " measures it again"));
    }
  }

  void add_freshness() {
    if (input_.match == "exact") {
      add("today", Verdict::Ok, "the daemon answers with it exactly");
    } else {
      add("today", Verdict::Fail,
          "the daemon answers with " + input_.match + (input_.why.empty() ? "" : ": " + input_.why) + ": " +
              retune() + " measures it with today's driver, toolchain and source");
    }
  }

  void add_coverage() {
    if (!input_.wanted) {
      return;
    }
    if (*input_.wanted == 0) {
      add("coverage", Verdict::Ok, "no problem of the kernel was asked for and not measured");
    } else {
      add("coverage", Verdict::Fail,
          counted(*input_.wanted, "problem") + " of the kernel asked for and not measured: " +
              "`cubindctl tune --wanted " + record_.context.kernel + "` measures them");
    }
  }

  const AuditInput& input_;
  const TableRecord& record_;
  const Explanation& explanation_;
  std::vector<AuditLine> lines_;
};

}  // namespace

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::Ok:
      return "ok";
    case Verdict::Note:
      return "note";
    case Verdict::Fail:
      return "FAIL";
  }
  return "?";
}

std::vector<AuditLine> audit(const AuditInput& input) { return Auditing(input).run(); }

}  // namespace cubind::ctl
