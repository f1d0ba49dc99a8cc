// Fills a lease with all that is known about its question.
#pragma once

#include "server/jobs/agent.hpp"
#include "server/lookup/lookup.hpp"

namespace cubind {

class Store;
struct KernelEntry;

/// Fills spec and incumbent, and with the job's first lease its hints: a later lease repeats that search,
/// whatever was measured elsewhere in between. `device` is null for a job that only compiles.
void fill_search(Lease& lease, const KernelEntry& kernel, const OfferedDevice* device, Store& store,
                 const IndexSnapshot& index);

/// Adds the question's trials, their blocks and verifications (including those of other kernels with the same
/// source), and the artifacts of all problems that share a compile key. Full keys and details are left out:
/// the agent computes the keys itself, and a lease must stay far below the largest message. A retune starts a
/// new series: from older ones it gets the artifacts and the configurations that do not compile, but no
/// timings.
void fill_known_work(Lease& lease, const KernelSpec& spec, const OfferedDevice& device, Store& store,
                     const IndexSnapshot& index);
/// Adds only the keys of these artifacts, for an announced job: the configurations that were compiled before,
/// with or without success.
void fill_artifact_keys(Lease& lease, const KernelSpec& spec, const OfferedDevice& device, Store& store,
                        const IndexSnapshot& index);

}  // namespace cubind
