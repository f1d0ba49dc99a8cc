// Several tables as one.
#pragma once

#include <span>
#include <string>

#include "tuner/table/table.hpp"

namespace cubind {

/// A table in the order of its file: an element's place in its list is its place in the file.
struct NamedTable {
  std::string file;
  Table table;
};

/// The union, in canonical order. If two tables have a row of the same identity (table_identity.hpp), the
/// whole row with the higher rank stays (table_rank.hpp): an imported row never replaces a measured one. The
/// result does not depend on the order of the tables nor on how they are grouped, and a table merged with
/// itself is itself.
///
/// Throws Error(InvalidArgument) naming both places if one trial key stands for two problems, device classes,
/// policies or driver branches. A key holds all of these, so one of the tables was changed by hand, and no
/// rule says which.
Table merge_tables(std::span<const NamedTable> tables);

}  // namespace cubind
