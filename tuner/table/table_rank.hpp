// Which of two rows says more. Total orders: of two rows that differ in what they print one outranks the
// other, whoever asks and in whatever order.
#pragma once

#include "tuner/table/table.hpp"

namespace cubind {

/// Measured before provisional before imported before replayed; then the newer, then the faster one, then the
/// lesser canonical bytes.
bool outranks(const TableRecord& a, const TableRecord& b);

/// A wrong result before a correct one before any other outcome: what was wrong once is not trusted. Then the
/// one with more samples of the finals, of the screening, with more verifications, then the lesser canonical
/// bytes.
bool outranks(const TableTrial& a, const TableTrial& b);

/// Facts that are in no key (the name, the power limit) may differ within a class: the lesser canonical bytes
/// stand for it.
bool outranks(const TableDevice& a, const TableDevice& b);

}  // namespace cubind
