// What a lease is granted with: everything that is known about its question.
#pragma once

#include "server/jobs/agent.hpp"
#include "server/lookup/lookup.hpp"

namespace cubind {

class Store;
struct KernelEntry;

/// Fills spec, incumbent, and the job's hints with its first lease: a later one repeats that search,
/// whatever has been measured elsewhere meanwhile. `device` is null for a job that only compiles.
void fill_search(Lease& lease, const KernelEntry& kernel, const OfferedDevice* device, Store& store,
                 const IndexSnapshot& index);

/// The question's trials, their blocks and verifications with those of other kernels of the same source, and
/// the artifacts of all problems that are compiled alike, for a lease. Full keys and details are left out:
/// the agent computes the keys itself, and a lease must stay far below the largest message. A retune begins a
/// new series: of older ones it gets the artifacts and the configurations that do not compile, no timing.
void fill_known_work(Lease& lease, const KernelSpec& spec, const OfferedDevice& device, Store& store,
                     const IndexSnapshot& index);
/// The keys of those artifacts and nothing else, for a job that is announced: what was compiled before,
/// whether it is stored or did not compile.
void fill_artifact_keys(Lease& lease, const KernelSpec& spec, const OfferedDevice& device, Store& store,
                        const IndexSnapshot& index);

}  // namespace cubind
