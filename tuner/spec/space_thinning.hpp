// How constraints and launch limits thin a kernel's space for one problem, one after the other.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/interrupt.hpp"
#include "tuner/spec/kernel_spec.hpp"

namespace cubind {

struct Thinning {
  std::string where;           // "/constraints/2", "/launches/0"
  std::string condition;       // "VECTOR * sizeof(T) <= 16"; a launch limit's with the first that it rejects
  std::uint64_t rejected = 0;  // of those that the conditions before it left
  std::uint64_t left = 0;
};

/// The constraints in declared order, then those launch limits that reject something. Ends where nothing is
/// left, or where the space is too tangled to be counted soon. A constraint that can be evaluated only where
/// a later one holds is left out: the next one is charged with what it rejects. `interrupt` is asked now and
/// then.
std::vector<Thinning> thin_out(const KernelSpec& spec, const Problem& problem, const DeviceConstants& device,
                               const Interrupt& interrupt = {});

/// The condition that leaves no configuration: "/constraints/2: D % VECTOR == 0". Empty where some
/// configuration is valid, and where thin_out() does not come so far.
std::string what_leaves_none(const KernelSpec& spec, const Problem& problem, const DeviceConstants& device,
                             const Interrupt& interrupt = {});

}  // namespace cubind
