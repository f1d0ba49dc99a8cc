// Where the lines of a process's log go.
#pragma once

#include <spdlog/sinks/base_sink.h>

#include <cstdint>
#include <mutex>
#include <string_view>

#include "base/unique_fd.hpp"

namespace cubind {

/// Writes lines to a descriptor and never waits: a pipe without a reader, or a terminal that Ctrl-S holds,
/// must not hold up a call. A line that finds no room is dropped. The next line that finds some follows
/// one with the number of those dropped.
class LogSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  /// Borrows the descriptor.
  explicit LogSink(int fd);

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}

 private:
  bool write(std::string_view text);
  ssize_t write_some(std::string_view text);
  void write_number_of_dropped(const spdlog::details::log_msg& before);

  const int fd_;
  /// Another open file description of a pipe or a terminal: not to wait is a property of it, and the one that
  /// `fd_` has is shared with other processes. Empty where it cannot be had.
  UniqueFd own_;
  bool is_socket_ = false;
  std::uint64_t dropped_ = 0;
  bool is_torn_ = false;  // the last line lacks its end
};

}  // namespace cubind
