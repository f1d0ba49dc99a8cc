// Which records may answer a question, best first. Pure: the same question, snapshot and spec give the same
// candidates.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/lookup/index.hpp"
#include "tuner/plan/answer.hpp"
#include "tuner/spec/kernel_spec.hpp"

namespace cubind {

/// The newest toolchain that agents offer for a question: what would compile today. Agents may have it in
/// several builds; an upgrade in place replaces a build and may leave the version as it was.
struct CurrentToolchain {
  struct Build {
    Digest nvrtc, builtins;
    bool operator==(const Build&) const = default;
  };
  std::string name;           // "nvrtc 13.0"
  std::vector<Build> builds;  // empty: an agent does not say which it has
};

/// Whether the version is that of `current`.
bool is_version_of(const CurrentToolchain& current, const ToolchainIdentity& toolchain);
/// Whether version and libraries are those of `current`. The toolkit's headers are not compared: only after
/// a compile it is known which of them a source includes.
bool is_current(const CurrentToolchain& current, const ToolchainIdentity& toolchain);

/// A caller's question, canonical and checked.
struct Question {
  std::shared_ptr<const KernelSpec> spec;
  std::uint64_t spec_revision = 0;  // another number for every spec that was ever loaded
  bool is_foreign = false;          // another user than the daemon's has sent the kernel
  Digest verification;              // today's verification digest for records of these numerics
  RecordQuestion key;               // kernel, interface, problem, device class, policy, numerics, namespace
  DeviceClass device;
  std::optional<DriverVersion> driver;        // absent: makes nothing stale
  std::uint32_t power_limit_mw = 0;           // the caller's; 0: not said
  std::optional<CurrentToolchain> toolchain;  // absent: makes nothing stale
  /// Only records that today's source leaves as they were answer, with the very bytes that were measured. No
  /// validator counts, so that driver and toolchain do not change which record answers.
  bool is_locked = false;
  /// The first valid configuration, if none of the spec's defaults is valid and the space was searched for
  /// it: that may take long.
  std::optional<Configuration> fallback = {};
};

/// The architecture to compile a question's answer for.
std::string target_architecture(const Question& question);

/// A configuration that may answer, and how good that answer would be.
struct AnswerCandidate {
  Match match;
  Evidence evidence = Evidence::None;
  RecordPtr record;             // null: the default configuration
  Configuration configuration;  // of today's spec
};

/// A record's configuration in terms of today's spec, and whether the spec has changed for it since.
struct CarriedOver {
  Configuration configuration;
  bool other_revision = false;
};

/// Absent: today's spec does not have such a configuration any more. A tunable that the record does not know
/// takes the value of the first default: a new tunable orphans no table.
std::optional<CarriedOver> carry_over(const KernelSpec& spec, const RecordRow& record,
                                      const DeviceFacts& measured_on);

/// carry_over() for the question's spec, possibly remembered.
using CarryOver = std::function<std::optional<CarriedOver>(const RecordRow&, const DeviceFacts&)>;

/// The distance up to which the nearest problem answers.
inline constexpr double kNearestLimit = 2.0;

/// The first of the spec's defaults that is valid for the asked problem, else the question's fallback;
/// absent: there is none, or the space was not searched.
std::optional<Configuration> valid_default(const Question& question);

/// At most `limit` candidates with records, then valid_default() and the valid defaults after it. Each
/// satisfies the constraints and launch limits of the asked problem; others are skipped.
///
/// A record of the problem itself has no departure; one of its bucket `bucket` (the largest measured problem
/// first); others within kNearestLimit `nearest_problem`; one of another device class `other_device`.
/// Validators add `stale`, a changed source adds `other_revision`. Order: the match, then the evidence
/// (measured, provisional, imported, shipped), then for buckets the larger problem, else the smaller
/// distance. Results of a replay device never answer for a real class, nor the other way round, and clients'
/// reports answer nothing. Only records that were compared with today's default answer numerics
/// `invariant:DIM`: of the same bucket, device class, revision and toolchain.
///
/// A locked question has no default, and no record with `stale` or `other_revision`.
///
/// Calls `visit` with one after the other, until it returns false: candidates are ranked only as far as the
/// caller asks.
void visit_candidates(const Question& question, const IndexSnapshot& index, const CarryOver& carry,
                      const std::function<bool(AnswerCandidate&&)>& visit, std::size_t limit = 8);

/// All of visit_candidates().
std::vector<AnswerCandidate> rank_candidates(const Question& question, const IndexSnapshot& index,
                                             const CarryOver& carry, std::size_t limit = 8);

/// Which problems of the question's bucket the record answers, of those that have no record of their own: all
/// for which these expressions hold, and its own constraints. Each says where the configuration of a record
/// that goes before it is not valid. Absent: other problems of the bucket may have another answer.
std::optional<std::vector<std::string>> bucket_conditions(const Question& question,
                                                          const IndexSnapshot& index, const CarryOver& carry,
                                                          const RecordRow& record);

/// Whether the dims lie within the bucket's intervals.
bool in_bucket(const std::vector<BucketRule::Interval>& bucket, Dims dims);

/// Whether a validator of the record (driver branch, toolchain, power limit, flush method) is not the
/// question's. A fact that one side does not know makes nothing stale; power limits are compared on one
/// device class. Toolchains are compared by their libraries if the record was measured here. If a table
/// brought it, by their version: another machine's build of the same version is not an upgrade.
bool is_stale(const Question& question, const RecordRow& record, bool same_device);

/// The validator that makes the record stale, then and now: "nvrtc 13.0, now nvrtc 13.5". Empty: it is not
/// stale.
std::string stale_because(const Question& question, const RecordRow& record, bool same_device);

/// Whether an agent of this daemon measured the record or played it back. A table brought the others.
bool was_measured_here(const RecordRow& record);

/// Measured here (or replayed, for a replay device), alone on the GPU, for today's source and validators:
/// nothing to tune.
bool is_fresh(const Question& question, const AnswerCandidate& candidate);

}  // namespace cubind
