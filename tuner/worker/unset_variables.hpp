#pragma once

#include <set>
#include <string>
#include <string_view>

#include "schemas/worker.pb.h"
#include "tuner/worker/compile_ptx.hpp"

namespace cubind::worker {

/// Explains that a kernel of the module uses a __constant__ or __device__ variable that nothing sets, so that
/// it would be measured and verified on zeros, and what to write. Empty: it uses none. `set`: the symbols
/// that the spec gives a content.
///
/// Variables that no argument can be copied to are not meant: those within functions, and those of the
/// compiler. Nor is one that the source declares with an initializer (NVRTC's PTX does not tell zeros from
/// none), unless it is __constant__ and not const: zeros of those are there to be replaced.
std::string unset_variables(const PtxModule& module, const PtxKernel& kernel,
                            const std::set<std::string>& set, const v1::CompileRequest& request);

/// "filter<float>": the variable as the source names it, without unnamed namespaces.
std::string variable_name(const std::string& symbol);

/// Whether a declaration in the text gives the variable an initializer: "__device__ int name[2] = {0, 0};". A
/// constant's has to say const or constexpr.
bool declares_initialized(std::string_view text, std::string_view name, bool is_constant);

}  // namespace cubind::worker
