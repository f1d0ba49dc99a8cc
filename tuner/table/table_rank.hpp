// The rank of two rows. It is a total order: of two rows that print differently, the same one always outranks
// the other.
#pragma once

#include "tuner/table/table.hpp"

namespace cubind {

/// Measured before provisional before imported before shipped before replayed; then the newer, then the
/// faster one, then the lesser canonical bytes.
bool outranks(const TableRecord& a, const TableRecord& b);

/// A wrong result before a correct one before any other outcome: a configuration that was wrong once is not
/// trusted. Then the one with more samples of the finals, of the screening, with more verifications, then the
/// lesser canonical bytes.
bool outranks(const TableTrial& a, const TableTrial& b);

/// Facts that are in no key (the name, the power limit) may differ within a class: the lesser canonical bytes
/// stand for it.
bool outranks(const TableDevice& a, const TableDevice& b);

}  // namespace cubind
