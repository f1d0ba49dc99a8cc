#pragma once

#include "server/config.hpp"
#include "server/service/context.hpp"

namespace cubind {

/// Fills a store in which nothing is known yet. A table that is refused is left out, with a line in the log.
void import_shipped_tables(ServiceContext& context, const Config& config);

}  // namespace cubind
