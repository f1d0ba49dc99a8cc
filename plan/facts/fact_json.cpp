#include "plan/facts/fact_json.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <limits>
#include <string>

#include "base/error.hpp"
#include "base/hex.hpp"
#include "plan/facts/fact_check.hpp"
#include "plan/facts/value_check.hpp"
#include "plan/problem_json.hpp"
#include "plan/wire.hpp"

namespace cubind {
namespace {

using Field = google::protobuf::FieldDescriptor;
using google::protobuf::Message;

/// `json_name` where the proto has one: those that protobuf makes have no underscore.
const std::string& name_of(const Field& field) {
  return field.json_name().find('_') == std::string::npos ? field.name() : field.json_name();
}

/// "wrong_result" of WRONG_RESULT.
std::string name_of(const google::protobuf::EnumValueDescriptor& value) {
  std::string name = value.name();
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name;
}

OrderedJson part_of(const Message& part) {
  if (const auto* problem = dynamic_cast<const v1::Problem*>(&part)) {
    return to_json(problem_from_wire(*problem, "problem"));
  }
  return to_json(part);
}

OrderedJson value_of(const Message& fact, const Field& field) {
  const auto& access = *fact.GetReflection();
  switch (field.cpp_type()) {
    case Field::CPPTYPE_DOUBLE:
      return access.GetDouble(fact, &field);
    case Field::CPPTYPE_UINT32:
      return access.GetUInt32(fact, &field);
    case Field::CPPTYPE_UINT64:
      return access.GetUInt64(fact, &field);
    case Field::CPPTYPE_BOOL:
      return access.GetBool(fact, &field);
    case Field::CPPTYPE_ENUM:
      return name_of(*access.GetEnum(fact, &field));
    case Field::CPPTYPE_STRING: {
      std::string text = access.GetString(fact, &field);
      return field.type() == Field::TYPE_BYTES ? hex(text) : text;
    }
    case Field::CPPTYPE_MESSAGE:
      return part_of(access.GetMessage(fact, &field));
    default:
      throw Error(ErrorCode::Internal, field.full_name(), "has a type that no fact has");
  }
}

OrderedJson list_of(const Message& fact, const Field& field) {
  const auto& access = *fact.GetReflection();
  OrderedJson list = OrderedJson::array();
  for (int i = 0; i < access.FieldSize(fact, &field); ++i) {
    if (field.cpp_type() == Field::CPPTYPE_DOUBLE) {
      list.push_back(access.GetRepeatedDouble(fact, &field, i));
    } else if (field.cpp_type() == Field::CPPTYPE_STRING) {
      list.push_back(access.GetRepeatedString(fact, &field, i));
    } else {
      list.push_back(part_of(access.GetRepeatedMessage(fact, &field, i)));
    }
  }
  return list;
}

bool is_zero(const OrderedJson& value) {
  return value == false || value == 0 || (value.is_string() && value.get_ref<const std::string&>().empty());
}

double number_of(const JsonNode& node, const Field& field) {
  const double value = node.as_number();
  try {
    check_number(field, value, {});
  } catch (const Error& error) {  // its location is spelled only then: tables have many numbers
    node.fail(error.cause());
  }
  return value;
}

void read_value(const JsonNode& node, const Field& field, Message& fact) {
  const auto& access = *fact.GetReflection();
  if (field.is_repeated()) {
    for (const JsonNode& element : node.elements()) {
      access.AddDouble(&fact, &field, number_of(element, field));
    }
    return;
  }
  switch (field.cpp_type()) {
    case Field::CPPTYPE_DOUBLE:
      return access.SetDouble(&fact, &field, number_of(node, field));
    case Field::CPPTYPE_UINT32:
      return access.SetUInt32(
          &fact, &field,
          static_cast<std::uint32_t>(node.as_int64(0, std::numeric_limits<std::uint32_t>::max())));
    case Field::CPPTYPE_UINT64:
      return access.SetUInt64(
          &fact, &field,
          static_cast<std::uint64_t>(node.as_int64(0, std::numeric_limits<std::int64_t>::max())));
    case Field::CPPTYPE_BOOL:
      return access.SetBool(&fact, &field, node.as_bool());
    case Field::CPPTYPE_STRING:
      return access.SetString(&fact, &field, node.as_string());
    default:
      return;
  }
}

/// Numbers, flags, texts; lists of numbers.
bool is_plain(const Field& field) {
  return field.is_repeated() ? field.cpp_type() == Field::CPPTYPE_DOUBLE
                             : field.type() != Field::TYPE_BYTES && field.cpp_type() != Field::CPPTYPE_ENUM &&
                                   field.cpp_type() != Field::CPPTYPE_MESSAGE;
}

}  // namespace

void add_fields(OrderedJson& json, const Message& fact, int first, int last) {
  const auto& type = *fact.GetDescriptor();
  for (int number = first; number <= last; ++number) {
    const Field* field = type.FindFieldByNumber(number);
    if (field == nullptr) {
      continue;
    }
    if (field->is_repeated()) {
      json[name_of(*field)] = list_of(fact, *field);
    } else if (field->message_type() == Conditions::descriptor()) {
      add_fields(json, fact.GetReflection()->GetMessage(fact, field));
    } else if (OrderedJson value = value_of(fact, *field);
               !field->has_optional_keyword() || !is_zero(value)) {
      json[name_of(*field)] = std::move(value);
    }
  }
}

void add_device_facts(OrderedJson& json, const v1::DeviceFacts& facts, int last) {
  add_fields(json, facts, 1, v1::DeviceFacts::kPciDeviceIdFieldNumber);
  json["compute_capability"] = std::to_string(facts.cc_major()) + "." + std::to_string(facts.cc_minor());
  add_fields(json, facts, v1::DeviceFacts::kSmCountFieldNumber, last);
}

std::vector<std::string> read_fields(const JsonNode& node, Message& fact) {
  const auto& access = *fact.GetReflection();
  std::vector<std::string> names;
  for (int number = 1; number <= kLastPrinted; ++number) {
    const Field* field = fact.GetDescriptor()->FindFieldByNumber(number);
    if (field == nullptr) {
      continue;
    }
    if (field->message_type() == Conditions::descriptor()) {
      std::ranges::move(read_fields(node, *access.MutableMessage(&fact, field)), std::back_inserter(names));
    } else if (is_plain(*field)) {
      names.push_back(name_of(*field));
      if (const auto value = node.find(names.back())) {
        read_value(*value, *field, fact);
      }
    }
  }
  return names;
}

}  // namespace cubind
