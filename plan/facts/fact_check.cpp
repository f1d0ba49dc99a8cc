#include "plan/facts/fact_check.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <utility>

#include "base/refuse.hpp"
#include "plan/facts/value_check.hpp"
#include "plan/wire_fields.hpp"

namespace cubind {
namespace {

using Field = google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr double kMaxMs = 1e12;       // 30 years; sums of them are finite
constexpr double kMaxRatio = 3.6e12;  // of two times

/// Times that something took: none is zero.
constexpr std::array<std::string_view, 4> kDurations{"samples_us", "median_us", "low_us", "high_us"};

/// In bytes, where it is not kMaxNameBytes. Logs are cut and printed by who takes them.
constexpr std::array<std::pair<std::string_view, std::size_t>, 9> kTextLimits{
    {{"entries", kMaxMessageBytes},
     {"entry_symbols", kMaxMessageBytes},
     {"entry_symbol", kMaxMessageBytes},
     {"waits_because", kMaxReasonBytes},
     {"detail", 0},
     {"error", 0},
     {"log", 0},
     {"pointer", 0},
     {"cause", 0}}};

void check_string(const std::string& name, const std::string& text, const std::string& field) {
  const auto* limit = std::ranges::find(kTextLimits, name, &std::pair<std::string_view, std::size_t>::first);
  if (limit == kTextLimits.end()) {
    check_text(text, field);
  } else if (limit->second > 0) {
    check_text(text, field, limit->second);
  }
}

/// One value: that of a field, or of its element.
void check_value(const Message& fact, const Field& field, int index, const std::string& where) {
  const auto& access = *fact.GetReflection();
  const bool repeated = field.is_repeated();
  if (field.cpp_type() == Field::CPPTYPE_DOUBLE) {
    const double value =
        repeated ? access.GetRepeatedDouble(fact, &field, index) : access.GetDouble(fact, &field);
    check_number(field, value, where);
  } else if (field.type() == Field::TYPE_STRING) {
    check_string(field.name(),
                 repeated ? access.GetRepeatedString(fact, &field, index) : access.GetString(fact, &field),
                 where);
  } else if (field.cpp_type() == Field::CPPTYPE_MESSAGE && (repeated || access.HasField(fact, &field))) {
    check_fact(repeated ? access.GetRepeatedMessage(fact, &field, index) : access.GetMessage(fact, &field),
               where);
  }
}

}  // namespace

void check_number(const Field& field, double value, const std::string& where) {
  const std::string_view name = field.name();
  if (std::ranges::find(kDurations, name) != kDurations.end()) {
    return check_duration(value, where);
  }
  // What has no unit is finite.
  check_number(value,
               name.ends_with("_us")      ? kMaxTimeUs
               : name.ends_with("ms")     ? kMaxMs
               : name.starts_with("gain") ? kMaxRatio
                                          : std::numeric_limits<double>::max(),
               where);
}

void check_fact(const Message& fact, const std::string& field) {
  const auto& access = *fact.GetReflection();
  if (const auto& unknown = access.GetUnknownFields(fact); !unknown.empty()) {
    refuse(field, "has a field that this version does not know (number " +
                      std::to_string(unknown.field(0).number()) + "): upgrade the daemon first");
  }
  for (int i = 0; i < fact.GetDescriptor()->field_count(); ++i) {
    const Field& member = *fact.GetDescriptor()->field(i);
    const std::string where = member_field(field, member.name());
    for (int at = 0; member.is_repeated() && at < access.FieldSize(fact, &member); ++at) {
      check_value(fact, member, at, element(where, at));
    }
    if (!member.is_repeated()) {
      check_value(fact, member, 0, where);
    }
  }
}

}  // namespace cubind
