// What was stored and what was measured, held against each other.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tuner/agent/job_channel.hpp"
#include "tuner/table/table.hpp"

namespace cubind::test {

/// Of one problem.
struct KillEvidence {
  std::size_t measured = 0;  // blocks, as the device logged them
  std::size_t stored = 0;    // blocks
  std::size_t repeated = 0;  // measured once more than stored
  std::size_t batches = 0;   // that they came in
  /// In plain words, each a broken promise; empty: none.
  std::vector<std::string> faults;
};

/// Batches that a kill may cost: those in flight, the next one, which waits to be sent, and the one that is
/// measured meanwhile.
inline constexpr std::size_t kMostLost = kBatchesInFlight + 2;

/// By problem. `log` has the lines of the replay device, `acknowledged` "TRIAL STAGE INDEX" for each block
/// whose acknowledgement an agent got, `stored` is an export of all trials with samples,
/// `played` the table that the device plays. Promises: every stored trial holds the samples that the device
/// plays, from the first on, none missing and none twice; what was measured is stored; what was measured
/// again came in at most kMostLost batches (a screening block, or the blocks of a round). None of it had been
/// acknowledged.
std::map<std::string, KillEvidence> gather_evidence(const std::vector<std::string>& log,
                                                    const std::vector<std::string>& acknowledged,
                                                    const Table& stored, const Table& played);

}  // namespace cubind::test
