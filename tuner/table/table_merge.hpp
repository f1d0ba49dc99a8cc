// Several tables as one.
#pragma once

#include <span>
#include <string>

#include "tuner/table/table.hpp"

namespace cubind {

/// A table as it was read: an element's place in its list is that in the file.
struct NamedTable {
  std::string file;
  Table table;
};

/// The union, in canonical order. Where two tables have a row for the same identity (table_identity.hpp), the
/// one that outranks the other stands (table_rank.hpp), whole: an imported row never replaces a measured one.
/// The result does not depend on the order of the tables nor on how they are grouped, and a table merged with
/// itself is itself.
///
/// Throws Error(InvalidArgument) naming both places where one trial key stands for two problems, device
/// classes, policies or driver branches, which a key holds: one of the tables was changed by hand, and no
/// rule says which.
Table merge_tables(std::span<const NamedTable> tables);

}  // namespace cubind
