#include "base/log_format.hpp"

#include <spdlog/pattern_formatter.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/request_id.hpp"
#include "base/text.hpp"

namespace cubind {
namespace {

/// %q: the request, if there is one.
class RequestFlag final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg&, const std::tm&, spdlog::memory_buf_t& line) override {
    if (const RequestId id = current_request()) {
      const std::string text = " [request " + *id + "]";
      line.append(text.data(), text.data() + text.size());
    }
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<RequestFlag>(); }
};

class JsonFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& line) override {
    const auto text_of = [](spdlog::string_view_t text) { return std::string(text.data(), text.size()); };
    nlohmann::ordered_json entry{{"time", iso8601_utc(message.time)},
                                 {"level", text_of(spdlog::level::to_string_view(message.level))},
                                 {"program", text_of(message.logger_name)},
                                 {"pid", ::getpid()},
                                 {"text", text_of(message.payload)}};
    if (const RequestId id = current_request()) {
      entry["request"] = *id;
    }
    const std::string text = entry.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    line.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<formatter> clone() const override { return std::make_unique<JsonFormatter>(); }
};

}  // namespace

std::unique_ptr<spdlog::formatter> log_formatter(std::string_view form) {
  if (form == "json") {
    return std::make_unique<JsonFormatter>();
  }
  if (form != "text") {
    throw Error(ErrorCode::InvalidArgument, "log format", quoted(form) + " is neither text nor json");
  }
  auto formatter = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc);
  formatter->add_flag<RequestFlag>('q').set_pattern("%Y-%m-%dT%H:%M:%S.%eZ %n[%P] %l: %v%q");
  return formatter;
}

}  // namespace cubind
