// The want list: misses that started no job, and those of them that can be tuned.
#pragma once

#include <vector>

#include "schemas/cubind.pb.h"
#include "server/access/caller.hpp"
#include "server/service/context.hpp"

namespace cubind {

/// Reads the store: not for the job thread.
void list_wanted(ServiceContext& context, const Caller& caller, const v1::ListWantedRequest& request,
                 v1::ListWantedReply& reply);

/// The questions of a TuneRequest: those that it names, or the entries of the want list without an obstacle.
/// It looks at the spec files first: a user who edits one and then asks for its kernel means the edited one.
/// It reads the store: do not call it on the job thread.
std::vector<Question> questions_of(ServiceContext& context, const v1::TuneRequest& request);

}  // namespace cubind
