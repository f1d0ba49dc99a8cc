// What a list shows of a record.
#pragma once

#include <string>
#include <vector>

#include "client/web/view.hpp"
#include "schemas/cubind.pb.h"

namespace cubind::web {

struct RecordColumn {
  Column column;
  Cell (*cell_of)(const v1::ListedRecord&);
};

const std::vector<RecordColumn>& record_columns();
/// The texts of all columns in lower case: what a filter looks for words in.
std::string text_of(const v1::ListedRecord& record);

/// What distinguishes the record's question, and what makes its time doubtful.
std::string marks_of(const v1::ListedRecord& record);
std::string configuration_text(const v1::ListedRecord& record);

}  // namespace cubind::web
