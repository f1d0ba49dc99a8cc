// The forms of a line of the log.
#pragma once

#include <spdlog/formatter.h>

#include <memory>
#include <string_view>

namespace cubind {

/// "text": `TIME PROGRAM[PID] LEVEL: TEXT`, in a request followed by ` [request ID]`. "json": an object with
/// time, level, program, pid, text and, in a request, request. Throws InvalidArgument for another name.
std::unique_ptr<spdlog::formatter> log_formatter(std::string_view form);

}  // namespace cubind
