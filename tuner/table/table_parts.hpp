// A table that may have faults: its readable part, and all of its faults.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/json.hpp"
#include "tuner/spec/keys.hpp"
#include "tuner/table/table.hpp"

namespace cubind {

struct TableParts {
  Table table;                                             // without the elements that have faults
  std::vector<std::size_t> record_indices, trial_indices;  // of each: its index in the file
  std::vector<Error> faults;                               // in the order of the file
};

/// Throws what makes the document no table, and the fault of an element that reaches `max_faults`.
TableParts read_table_parts(const OrderedJson& document, const std::string& file, std::size_t max_faults,
                            const Interrupt& interrupt = {});

/// The terms in which a table writes them. Throw Error(InvalidArgument) at `where`.
Policy policy_from_table(const std::string& text, const std::string& where);
Numerics numerics_from_table(const std::string& text, const std::string& where);

}  // namespace cubind
