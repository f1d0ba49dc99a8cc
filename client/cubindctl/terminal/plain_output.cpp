#include "client/cubindctl/terminal/plain_output.hpp"

#include "base/text.hpp"

namespace cubind::ctl {

PlainOutput::~PlainOutput() {
  out_.flush();
  out_.rdbuf(before_);
}

PlainOutput::Buffer::int_type PlainOutput::Buffer::overflow(int_type c) {
  if (c == traits_type::eof()) {
    return traits_type::not_eof(c);
  }
  const char one = traits_type::to_char_type(c);
  return xsputn(&one, 1) == 1 ? c : traits_type::eof();
}

std::streamsize PlainOutput::Buffer::xsputn(const char* text, std::streamsize size) {
  pending_.append(text, static_cast<std::size_t>(size));
  // A character of several bytes is never cut: the rest of a line waits for its end or a flush.
  const auto end = pending_.rfind('\n');
  return end == std::string::npos || write_out(end + 1) ? size : 0;
}

int PlainOutput::Buffer::sync() { return write_out(pending_.size()) && target_.pubsync() == 0 ? 0 : -1; }

bool PlainOutput::Buffer::write_out(std::size_t bytes) {
  const std::string text = printable(std::string_view(pending_).substr(0, bytes));
  pending_.erase(0, bytes);
  const auto size = static_cast<std::streamsize>(text.size());
  return target_.sputn(text.data(), size) == size;
}

std::streambuf* terminal_buffer(std::ostream& out) {
  auto* plain = dynamic_cast<PlainOutput::Buffer*>(out.rdbuf());
  return plain ? &plain->target() : out.rdbuf();
}

}  // namespace cubind::ctl
