// From a table to the store.
#pragma once

#include <cstdint>
#include <string>

#include "server/store/store.hpp"
#include "tuner/table/table.hpp"

namespace cubind {

struct ImportOptions {
  std::string name_space = {};  // replaces the records' own unless empty
  bool only_new = false;        // a question that has a current record keeps it
};

struct ImportReport {
  std::uint32_t records_added = 0;
  std::uint32_t records_known = 0;  // the same or a better row was there
  std::uint32_t trials_added = 0;
};

/// Writes a table in the transaction of `store`. A record's evidence becomes `imported` (`replayed` for a
/// replayed class, and `shipped` stays), so that it never replaces a measurement. Throws
/// Error(InvalidArgument) at "FILE /records/3/policy" for faults that read_table() cannot see, and the errors
/// of `interrupt`.
ImportReport import_table(StoreWriter& store, const Table& table, const std::string& file,
                          const ImportOptions& options, const Interrupt& interrupt = {});

/// A record as a row with its own evidence. Throws as import_table() does; `where` is for the message.
RecordRow record_row(const TableRecord& record, const std::string& where);

/// Writes devices and records with their own evidence: for a table that is trusted like this store's own
/// measurements, as that of a signed bundle.
void put_own_records(StoreWriter& store, const Table& table, const std::string& file);

}  // namespace cubind
