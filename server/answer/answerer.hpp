// Makes a complete answer to a question from stored records and artifacts. Names missing compiles but does
// not wait for them.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/answer/artifact_entries.hpp"
#include "server/answer/artifact_finder.hpp"
#include "server/jobs/orders.hpp"
#include "server/lookup/revisions.hpp"

namespace cubind {

/// An answer with all content of its reply except the job and the cubin's bytes.
struct ServedAnswer {
  Question question;
  AnswerCandidate candidate;
  ArtifactRow artifact;
  LaunchPlan plan;                              // for the asked problem, with entry symbols
  PlanTemplate plan_template;                   // the plan as a rule
  std::vector<BucketRule::Interval> intervals;  // of the dims, in their order
  std::vector<Problem> own_records;             // inside the intervals; they have their own answers
  std::vector<std::string> conditions;          // true where no other record of the bucket is preferred
  Generation generation;
  std::string measured_device;  // label
  bool verified = false;        // with the current reference and tolerance
  bool same_bytes_measured = false;
};

/// Whether the answer has a record of the question's bucket and device class, of any age.
bool is_of_bucket(const AnswerCandidate& candidate);

/// The answer to a question that is available without waiting, and the compile that would improve it.
struct Resolution {
  /// The best acceptable candidate answers without waiting for a measurement: the problem or its bucket was
  /// measured or imported, or the caller accepts the departures.
  bool hit = false;
  bool any_record = false;                       // some acceptable candidate has a record
  std::optional<ServedAnswer> answer;            // the best acceptable candidate that has an artifact
  std::optional<CompileOrder> compile;           // for a better or the only candidate, if it has no artifact
  std::optional<std::string> refused_toolchain;  // a toolchain whose cubins the driver cannot load
  std::optional<Match> best_refused;             // the best match that `accept` refused
  /// The answer's cubin is from an earlier toolchain; `compile` is for the same configuration.
  bool outdated = false;
  /// Why the best candidate with an artifact cannot be launched: its plan exceeds a limit of the artifact, or
  /// passes arguments that the entries do not take. Empty if no candidate was skipped for that.
  std::string unlaunchable;
};

/// Thread-safe.
class Answerer {
 public:
  Answerer(ArtifactFinder& artifacts, ArtifactEntries& entries) : artifacts_(artifacts), entries_(entries) {}

  /// Answers from the snapshot's generation. If `accepted` is absent, every departure is accepted, and a hit
  /// is an answer that departs no further than the bucket. `failed` has the single-flight keys of failed
  /// compiles, whose candidates are skipped.
  Resolution resolve(const Question& question, const IndexSnapshot& index,
                     const std::optional<Match>& accepted, const std::set<Digest>& failed);

  /// Every candidate, best first.
  std::vector<AnswerCandidate> candidates(const Question& question, const IndexSnapshot& index);

 private:
  /// Absent if the candidate cannot be launched; `why` then has the reason.
  std::optional<ServedAnswer> complete(const Question& question, const AnswerCandidate& candidate,
                                       const ArtifactRow& artifact, const IndexSnapshot& index,
                                       std::string& why);
  /// The fault that keeps the plan from being launched with the artifact; empty: none.
  std::string fault_of(const ServedAnswer& answer);

  ArtifactFinder& artifacts_;
  ArtifactEntries& entries_;
  Revisions revisions_;
};

}  // namespace cubind
