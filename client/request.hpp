// Turns a query into the daemon's request.
#pragma once

#include <string>

#include "client/query.hpp"
#include "schemas/cubind.pb.h"

namespace cubind {

/// Does not set `have_artifacts`. Reads the current GPU if the query asks for it. Throws
/// Error(InvalidArgument) for an unknown departure in `accept`, and the errors of current_gpu().
v1::GetVariantRequest make_request(const Query& query);

/// "12@9f86d081...": a generation's number and its store.
std::string generation_text(const v1::Generation& generation);
/// The inverse. Throws Error(InvalidArgument) for any other text.
v1::Generation generation_from_text(const std::string& text);

/// Invariance includes reproducibility. `invariant_dim` is empty if the query asks for no invariance.
v1::Numerics make_numerics(bool reproducible, const std::string& invariant_dim);

/// Also used by tuning requests.
void to_wire(const DeviceChoice& from, v1::Device& to);

/// A key that is equal for two questions if the rule of one's answer can cover the other: everything but the
/// values of the dims, with sorted names.
std::string question_key(const v1::GetVariantRequest& request);

/// `problem` with its names in the order of `canonical`, the daemon's form of a problem with the same names.
/// Missing flags get the values of `canonical`; `problem` may list flags among its dims.
Problem arranged_like(const Problem& canonical, const Problem& problem);

}  // namespace cubind
