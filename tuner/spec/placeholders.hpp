// `{NAME}` in entries, defines and options.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace cubind {

/// The distinct names in braces, in the order of their first appearance. Throws Error(InvalidArgument) at
/// `where` for a brace without its partner, and for text between braces that is not an identifier.
std::vector<std::string> placeholders(std::string_view text, std::string_view where);

bool has_placeholders(std::string_view text);

/// The text with every `{NAME}` replaced by value(NAME). Only for text that placeholders() accepts.
std::string replace_placeholders(std::string_view text,
                                 const std::function<std::string(std::string_view)>& value);

}  // namespace cubind
