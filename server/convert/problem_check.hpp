// A problem of a request against its kernel, with the path of the very field that is wrong.
#pragma once

#include <string>

#include "schemas/cubind.pb.h"
#include "tuner/spec/kernel_spec.hpp"

namespace cubind {

/// Throws InvalidArgument: a dim, type or flag that the kernel does not have or that is given twice or
/// missing, a value out of range, a type that the kernel does not list. KernelSpec::canonicalize() would
/// refuse the same, naming the problem alone.
void check_problem_of(const KernelSpec& spec, const v1::Problem& problem, const std::string& field);

/// Throws InvalidArgument where a Triton kernel is not defined for the architecture.
void check_architecture_of(const KernelSpec& spec, const std::string& architecture, const std::string& field);

}  // namespace cubind
