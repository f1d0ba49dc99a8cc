#pragma once

#include <string_view>

namespace cubind {

/// Sets up the process's log once, in main(): lines on stderr, in the form that CUBIND_LOG_FORMAT names
/// (log_formatter(); default: text), each written at once or, without a reader, dropped (LogSink). Level is
/// trace, debug, info, warn, error or off; any other throws InvalidArgument. Sources that log with formats
/// include <spdlog/spdlog.h> themselves and call spdlog::info and its like.
void init_logging(std::string_view program, std::string_view level = "info");

/// For sources that include no spdlog header. Thread-safe.
void log_debug(std::string_view text);
void log_info(std::string_view text);
void log_warning(std::string_view text);
void log_error(std::string_view text);

}  // namespace cubind
