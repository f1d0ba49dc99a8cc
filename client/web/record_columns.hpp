// What a list shows of a record.
#pragma once

#include <string>
#include <vector>

#include "client/web/snapshot.hpp"
#include "client/web/view.hpp"
#include "schemas/cubind.pb.h"

namespace cubind::web {

struct RecordColumn {
  Column column;
  Cell (*cell_of)(const v1::ListedRecord&);
};

const std::vector<RecordColumn>& record_columns();
/// Sorted, filtered and paged by the address.
Grid records_table(const Records& records);
/// The texts of all columns in lower case: what a filter looks for words in.
std::string text_of(const v1::ListedRecord& record);

}  // namespace cubind::web
