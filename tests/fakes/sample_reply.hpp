// A complete reply of the daemon for a kernel of two launches, whose parts a test then changes.
#pragma once

#include <string>

#include "client/query.hpp"
#include "plan/launch_plan.hpp"
#include "schemas/cubind.pb.h"

namespace cubind::test {

/// `scale` with THREADS=256, VECTOR=4: launches `scale_rows` (x, y, N, alpha) and `finish` (y, partial, D),
/// the second with dynamic shared memory and a scratch buffer; constraints "D % VECTOR == 0" and "N != 300".
PlanTemplate sample_template();
Configuration sample_configuration();

/// Asks about `scale` on an H200.
Query query(const std::string& problem);

/// For N, D and T=f16 on an H200; the cubin rides in it. Bucket of N: 257 to
/// 1024, where 512 has a record of its own. Evidence measured, match exact.
v1::GetVariantReply sample_reply(const Problem& problem, const std::string& cubin);

}  // namespace cubind::test
