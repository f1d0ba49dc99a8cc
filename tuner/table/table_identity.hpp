// The identity of a row: a table holds each once.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "tuner/table/table.hpp"

namespace cubind {

/// A question: everything that a lookup asks for except the kernel's interface. `problem` is its text.
struct TableQuestion {
  std::string kernel;
  std::string problem;
  Digest device_class;
  std::string policy, numerics, name_space;
  auto operator<=>(const TableQuestion&) const = default;
};
TableQuestion question_of(const TableRecord& record);

/// One row of a question: each interface, driver branch and major version of the toolchain has its own row,
/// and none overwrites another.
struct RecordIdentity {
  TableQuestion question;
  Digest interface;
  std::string driver_branch;
  std::uint32_t toolchain_major = 0;
  auto operator<=>(const RecordIdentity&) const = default;
};
RecordIdentity identity_of(const TableRecord& record);

/// Kernels with the same code share trial keys.
struct TrialIdentity {
  std::string kernel;
  Digest trial;
  auto operator<=>(const TrialIdentity&) const = default;
};
TrialIdentity identity_of(const TableTrial& trial);

}  // namespace cubind
