// Output that moves no cursor: names, paths and source lines that others wrote reach the terminal as they
// read.
#pragma once

#include <ostream>
#include <streambuf>
#include <string>

namespace cubind::ctl {

/// While it lives, what the stream writes is made printable() line by line.
class PlainOutput {
 public:
  explicit PlainOutput(std::ostream& out) : out_(out), buffer_(*out.rdbuf()), before_(out.rdbuf(&buffer_)) {}
  ~PlainOutput();
  PlainOutput(const PlainOutput&) = delete;
  PlainOutput& operator=(const PlainOutput&) = delete;

 private:
  class Buffer final : public std::streambuf {
   public:
    explicit Buffer(std::streambuf& target) : target_(target) {}
    std::streambuf& target() { return target_; }

   protected:
    int_type overflow(int_type c) override;
    std::streamsize xsputn(const char* text, std::streamsize size) override;
    int sync() override;

   private:
    bool write_out(std::size_t bytes);

    std::streambuf& target_;
    std::string pending_;
  };
  friend std::streambuf* terminal_buffer(std::ostream& out);

  std::ostream& out_;
  Buffer buffer_;
  std::streambuf* before_;
};

/// Where the stream writes to behind a PlainOutput: for escape sequences of our own.
std::streambuf* terminal_buffer(std::ostream& out);

}  // namespace cubind::ctl
