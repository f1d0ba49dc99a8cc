// ListJobs: page by page, in an order that no job leaves.
#pragma once

#include "schemas/cubind.pb.h"
#include "server/service/context.hpp"

namespace cubind {

/// On the job thread. A job that ends between two pages is in one of them. Throws InvalidArgument for a page
/// token that no reply has, and NotFound for the id of no job.
void list_jobs(ServiceContext& context, const v1::ListJobsRequest& request, v1::ListJobsReply& reply);

}  // namespace cubind
