// Turns a query into the daemon's request.
#pragma once

#include <string>

#include "client/query.hpp"
#include "schemas/cubind.pb.h"

namespace cubind {

/// Leaves out `have_artifacts`. Reads the current GPU if the query asks for it. Throws Error(InvalidArgument)
/// for an unknown departure in `accept`, and the errors of current_gpu().
v1::GetVariantRequest make_request(const Query& query);

/// "12@9f86d081...": a generation's number and its store.
std::string generation_text(const v1::Generation& generation);
/// Throws Error(InvalidArgument) for another form.
v1::Generation generation_from_text(const std::string& text);

/// Invariance is more than reproducibility and includes it. `invariant_dim` empty: none is asked for.
v1::Numerics make_numerics(bool reproducible, const std::string& invariant_dim);

/// Also used by tuning requests.
void to_wire(const DeviceChoice& from, v1::Device& to);

/// The part that two questions must share so that the rule of one's answer covers the other: everything but
/// the values of the dims. Names are in it in sorted order.
std::string question_key(const v1::GetVariantRequest& request);

/// The problem of a request with its names in the order of `canonical`, the daemon's form of a problem with
/// the same names. Flags that were left out have the values of `canonical`; a flag may stand among the dims.
Problem arranged_like(const Problem& canonical, const Problem& problem);

}  // namespace cubind
