// ReportComparison: a client has measured an answer against a library's function.
#pragma once

#include "schemas/cubind.pb.h"
#include "server/service/context.hpp"

namespace cubind {

/// On the job thread: it changes the index. Throws FailedPrecondition if the question is not answered by a
/// record of its bucket, or by another cubin than the one that was compared.
void report_comparison(ServiceContext& context, const v1::ReportComparisonRequest& request);

}  // namespace cubind
