// How the fields of a message are named in errors: "problem.dims[1].value".
#pragma once

#include <string>
#include <string_view>

namespace cubind {

/// "FIELD.NAME", or the name alone where the message is the outermost one.
std::string member_field(std::string_view field, std::string_view name);
/// "FIELD.NAME[INDEX]"
std::string element_field(std::string_view field, std::string_view name, int index);
/// "LIST[INDEX]"
std::string element(std::string_view list, int index);
/// "LIST[INDEX].MEMBER"
std::string element_member(std::string_view list, int index, std::string_view member);

/// Throws Error(InvalidArgument) for an enumerator that a later version may have.
[[noreturn]] void refuse_unknown(std::string_view field, std::string_view what, int value);

}  // namespace cubind
