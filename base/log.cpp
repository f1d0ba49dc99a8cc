#include "base/log.hpp"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "base/error.hpp"
#include "base/log_format.hpp"
#include "base/log_sink.hpp"
#include "base/text.hpp"

namespace cubind {
namespace {

spdlog::level::level_enum parse_level(std::string_view name) {
  if (name == "trace") {
    return spdlog::level::trace;
  }
  if (name == "debug") {
    return spdlog::level::debug;
  }
  if (name == "info") {
    return spdlog::level::info;
  }
  if (name == "warn") {
    return spdlog::level::warn;
  }
  if (name == "error") {
    return spdlog::level::err;
  }
  if (name == "off") {
    return spdlog::level::off;
  }
  throw Error(ErrorCode::InvalidArgument, "log level",
              quoted(name) + " is not one of trace, debug, info, warn, error and off");
}

/// A line of the text that is not the first is indented: none looks like an entry of its own.
void log(spdlog::level::level_enum level, std::string_view text) {
  std::string entry = printable(text);
  for (auto at = entry.find('\n'); at != std::string::npos; at = entry.find('\n', at + 1)) {
    entry.insert(at + 1, "    ");
  }
  spdlog::default_logger_raw()->log(level, spdlog::string_view_t(entry.data(), entry.size()));
}

}  // namespace

void init_logging(std::string_view program, std::string_view level) {
  const auto parsed = parse_level(level);
  auto logger =
      std::make_shared<spdlog::logger>(std::string(program), std::make_shared<LogSink>(STDERR_FILENO));
  const char* const form = std::getenv("CUBIND_LOG_FORMAT");
  logger->set_formatter(log_formatter(form && *form ? form : "text"));
  logger->set_level(parsed);
  logger->flush_on(spdlog::level::trace);
  spdlog::set_default_logger(std::move(logger));
}

void log_debug(std::string_view text) { log(spdlog::level::debug, text); }
void log_info(std::string_view text) { log(spdlog::level::info, text); }
void log_warning(std::string_view text) { log(spdlog::level::warn, text); }
void log_error(std::string_view text) { log(spdlog::level::err, text); }

}  // namespace cubind
