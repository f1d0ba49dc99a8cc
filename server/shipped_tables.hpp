#pragma once

#include "server/config.hpp"
#include "server/service/context.hpp"

namespace cubind {

/// Fills a store in which nothing is known yet. The evidence of its records is `shipped`, or `imported` from
/// another folder than cubind's own. A table that is refused is left out, with a line in the log.
void import_shipped_tables(ServiceContext& context, const Config& config);

}  // namespace cubind
