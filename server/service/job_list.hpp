// ListJobs: page by page, in an order that no job leaves.
#pragma once

#include <string>

#include "schemas/cubind.pb.h"
#include "server/jobs/job_event.hpp"
#include "server/service/context.hpp"
#include "server/service/open_call.hpp"

namespace cubind {

/// On the job thread. A job that ends between two pages is in one of them. Throws InvalidArgument for a page
/// token that no reply has, and NotFound for the id of no job.
void list_jobs(ServiceContext& context, const OpenCall& open, const v1::ListJobsRequest& request,
               v1::ListJobsReply& reply);

/// An open job, or one that has ended. On the job thread. Throws NotFound for the id of no job that the
/// caller may see.
JobEvent find_job(const ServiceContext& context, const OpenCall& open, const std::string& id);

}  // namespace cubind
