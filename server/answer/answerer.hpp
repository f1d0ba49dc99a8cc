// Makes a complete answer to a question from the stored records and artifacts. It names missing compiles and
// does not wait for them.
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

/// An answer with everything that its reply says but the job and the cubin's bytes.
struct ServedAnswer {
  Question question;
  AnswerCandidate candidate;
  ArtifactRow artifact;
  LaunchPlan plan;                              // of the problem that was asked, with entry symbols
  PlanTemplate plan_template;                   // the same as a rule
  std::vector<BucketRule::Interval> intervals;  // of the dims, in their order
  std::vector<Problem> own_records;             // inside the intervals: they have answers of their own
  std::vector<std::string> conditions;          // where no other record of the bucket goes before this one
  Generation generation;
  std::string measured_device;  // label
  bool verified = false;        // with today's reference and tolerance
  bool same_bytes_measured = false;
};

/// Whether the answer rests on a record of the question's bucket, on its device class, however old that is.
bool is_of_bucket(const AnswerCandidate& candidate);

/// What there is for a question without waiting, and what would make it better.
struct Resolution {
  /// The best acceptable candidate answers without waiting for a measurement: the problem or its bucket was
  /// measured or imported, or the caller has said that it tolerates the departures.
  bool hit = false;
  bool any_record = false;                       // some acceptable candidate has a record
  std::optional<ServedAnswer> answer;            // the best acceptable candidate that has an artifact
  std::optional<CompileOrder> compile;           // of a better one, or of the only one, that has none
  std::optional<std::string> refused_toolchain;  // the driver cannot load its cubins
  std::optional<Match> best_refused;             // by `accept`
  /// The answer's cubin is from an earlier toolchain: `compile` is of the same configuration.
  bool outdated = false;
  /// Why the best candidate that has an artifact cannot be launched: its plan exceeds a limit of the
  /// artifact, or passes arguments that the entries do not take. Empty: none was passed over for that.
  std::string unlaunchable;
};

/// Thread-safe.
class Answerer {
 public:
  Answerer(ArtifactFinder& artifacts, ArtifactEntries& entries) : artifacts_(artifacts), entries_(entries) {}

  /// Answers from the snapshot's generation. `accepted` absent: every departure is accepted, and a hit is an
  /// answer that departs no further than the bucket. `failed` holds the single-flight keys of failed
  /// compiles: their candidates are skipped.
  Resolution resolve(const Question& question, const IndexSnapshot& index,
                     const std::optional<Match>& accepted, const std::set<Digest>& failed);

  /// Every candidate, best first.
  std::vector<AnswerCandidate> candidates(const Question& question, const IndexSnapshot& index);

 private:
  /// Absent: it cannot be launched, and `why` says why.
  std::optional<ServedAnswer> complete(const Question& question, const AnswerCandidate& candidate,
                                       const ArtifactRow& artifact, const IndexSnapshot& index,
                                       std::string& why);
  /// What the artifact does not allow of the plan; empty: nothing.
  std::string fault_of(const ServedAnswer& answer);

  ArtifactFinder& artifacts_;
  ArtifactEntries& entries_;
  Revisions revisions_;
};

}  // namespace cubind
