#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cubind {

/// The NVRTC options that a kernel spec may ask for; everything else is refused, because options can name
/// host files (--include-path, --pre-include, --time), change what is produced (--dlto, --device-c) or are
/// cubind's own to set (--gpu-architecture, --ptxas-options=-v).
///
/// Returns the one spelling that is handed to NVRTC and enters the key ("-lineinfo" is
/// "--generate-line-info", nvcc's "--expt-relaxed-constexpr" is "--device-as-default-execution-space",
/// "--fmad=TRUE" is refused). Throws Error(InvalidArgument) at `where`, naming the option and the allowed
/// ones.
std::string canonical_nvrtc_option(std::string_view option, std::string_view where);

/// Each option in canonical spelling, sorted; a repeated option is kept once, and two values of one option
/// are an error. `where` is the place of the list; an element's place is "WHERE/INDEX", as in a JSON pointer.
std::vector<std::string> canonical_nvrtc_options(const std::vector<std::string>& options,
                                                 std::string_view where);

/// The macros that nvcc defines with its counterparts of these canonical options and NVRTC does not: headers
/// ask for them. Of the allowed options only --device-as-default-execution-space has one.
std::vector<std::string> nvcc_defines(const std::vector<std::string>& options);

/// "NAME=VALUE" or "NAME": the name an identifier, the value one line of printable ASCII without a backslash.
void check_nvrtc_define(std::string_view define, std::string_view where);

/// A name expression: one line of printable ASCII without '#', '"', ';', a backslash or a comment. NVRTC
/// pastes it into a pragma, where a line break would begin a directive.
void check_name_expression(std::string_view expression, std::string_view where);

/// "sm_90", "sm_90a", "sm_100f": a real architecture.
void check_architecture(std::string_view architecture, std::string_view where);

}  // namespace cubind
