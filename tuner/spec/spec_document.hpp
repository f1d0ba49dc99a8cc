#pragma once

#include <string>
#include <string_view>

#include "tuner/spec/kernel_spec.hpp"

namespace cubind {

/// The JSON text alone, without its sources: bundle and digests are empty. Throws Error(InvalidArgument) at
/// `file` and pointer.
KernelSpec read_spec_document(std::string_view text, const std::string& file);

}  // namespace cubind
