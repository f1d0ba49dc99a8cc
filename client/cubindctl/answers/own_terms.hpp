// The terms of a question beyond its problem, for listings.
#pragma once

#include <string>
#include <vector>

#include "schemas/cubind.pb.h"

namespace cubind::ctl {

/// "warm,stream", "invariant:N", "namespace nightly": each only where it is not the default.
std::vector<std::string> own_terms(const v1::Policy& policy, const v1::Numerics& numerics,
                                   const std::string& name_space);

/// The parts as one cell of a table; "-" if there are none.
std::string remarks_of(const std::vector<std::string>& parts);

/// What distinguishes the record's question, and what makes its time doubtful.
std::string marks_of(const v1::ListedRecord& record);
std::string configuration_text(const v1::ListedRecord& record);

}  // namespace cubind::ctl
