// Lines that fit a terminal.
#pragma once

#include <cstddef>
#include <string>

namespace cubind::ctl {

/// The text in lines of at most `columns`, broken behind a space, else behind a comma. A part with neither
/// stays long. Each line but the first begins with `prefix` and four spaces. 0 columns: the text is not
/// broken.
std::string wrapped(const std::string& text, std::size_t columns, const std::string& prefix = {});

/// Wraps text that begins further right: its lines have room for `columns`, and each but the first begins
/// with `under` in addition.
std::string wrapped_under(const std::string& text, std::size_t columns, const std::string& under);

}  // namespace cubind::ctl
