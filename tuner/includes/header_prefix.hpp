#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cubind {

/// Whether the text contains the word, other than as a part of a longer identifier.
bool has_word(std::string_view text, std::string_view word);

/// The length of the beginning of a source that a precompiled header can hold: whole lines, each blank, a
/// comment or a directive, at least one an #include, ending outside of every #if. 0: there is none. It ends
/// before a line that contains one of `names`, and before what takes a real preprocessor to read: a quote
/// (except an include's), a trigraph, a backslash at the end, #line.
std::size_t header_prefix(std::string_view source, const std::vector<std::string>& names);

}  // namespace cubind
