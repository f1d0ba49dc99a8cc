#include "client/cubindctl/terminal/text_wrap.hpp"

#include <algorithm>

namespace cubind::ctl {
namespace {

// The end of the line that begins at `from` and may have `room` characters.
std::size_t end_of_line(const std::string& text, std::size_t from, std::size_t room) {
  if (text.size() - from <= room) {
    return text.size();
  }
  const std::size_t last = from + room;
  const std::size_t space = text.rfind(' ', last);
  const std::size_t comma = text.rfind(',', last - 1);
  // A long configuration is broken rather than left alone on a line of its own.
  const bool space_is_far = space == std::string::npos || space <= from || space < from + room / 2;
  if (comma != std::string::npos && comma >= from && space_is_far) {
    return comma + 1;
  }
  if (space != std::string::npos && space > from) {
    return space;
  }
  const std::size_t next = text.find_first_of(" ,", last);
  return next == std::string::npos ? text.size() : next + (text[next] == ',' ? 1 : 0);
}

// `first` columns for the first line, `others` behind `indent` for each further one.
std::string in_lines(const std::string& text, std::size_t first, std::size_t others,
                     const std::string& indent) {
  std::string lines;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = end_of_line(text, from, lines.empty() ? first : others);
    lines += (lines.empty() ? "" : "\n" + indent) + text.substr(from, end - from);
    from = end < text.size() && text[end] == ' ' ? end + 1 : end;
  }
  return lines;
}

}  // namespace

std::string wrapped(const std::string& text, std::size_t columns, const std::string& prefix) {
  const std::string indent = prefix + "    ";
  if (columns <= indent.size() + 1) {
    return text;
  }
  return in_lines(text, columns, columns - indent.size(), indent);
}

std::string wrapped_under(const std::string& text, std::size_t columns, const std::string& under) {
  return columns == 0 ? text : in_lines(text, columns, columns, under);
}

}  // namespace cubind::ctl
