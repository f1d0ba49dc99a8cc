// What was stored and what was measured, held against each other.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "tuner/agent/lease/job_channel.hpp"
#include "tuner/agent/tuning/trial_log.hpp"
#include "tuner/table/table.hpp"

namespace cubind::test {

/// Of one problem.
struct KillEvidence {
  std::size_t measured = 0;      // blocks, as the device logged them
  std::size_t stored = 0;        // blocks
  std::size_t repeated = 0;      // measured once more than stored
  std::size_t measurements = 0;  // that they came in: screening blocks, and rounds
  /// In plain words, each a broken promise; empty: none.
  std::vector<std::string> faults;
};

/// What a measurement takes at least.
inline constexpr std::chrono::milliseconds kPace = kBetweenBatches;
/// Measurements of a batch: those from the one before it until it is sent, and the one that is over by then.
inline constexpr std::size_t kMostInBatch = kBetweenBatches / kPace + 1;
/// Measurements that a kill may cost: those of the batches in flight and of the next one, which waits to be
/// sent, and the one under way.
inline constexpr std::size_t kMostLost = (kBatchesInFlight + 1) * kMostInBatch + 1;

/// By problem. `log` has the lines of the replay device, `acknowledged` "TRIAL STAGE INDEX" for each block
/// whose acknowledgement an agent got, `stored` is an export of all trials with samples,
/// `played` the table that the device plays. Promises: every stored trial holds the samples that the device
/// plays, from the first on, none missing and none twice; what was measured is stored; what was measured
/// again came in at most kMostLost measurements (a screening block, or the blocks of a round) for each of the
/// `kills`. None of it had been acknowledged.
std::map<std::string, KillEvidence> gather_evidence(const std::vector<std::string>& log,
                                                    const std::vector<std::string>& acknowledged,
                                                    const Table& stored, const Table& played,
                                                    std::size_t kills = 1);

}  // namespace cubind::test
