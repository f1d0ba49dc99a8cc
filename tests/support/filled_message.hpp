// A message in which every field is set, for tests that must see each of them.
#pragma once

#include <google/protobuf/message.h>

#include <string>

namespace cubind::test {

/// Sets every field that is not set yet: numbers to the field's number, texts to its name, bytes to 32 equal
/// ones, lists to one element, enumerations to their last value.
inline void fill(google::protobuf::Message& message) {
  using Field = google::protobuf::FieldDescriptor;
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  const google::protobuf::Reflection& access = *message.GetReflection();
  const auto put = [&](const Field* field, auto set, auto add, const auto& value) {
    field->is_repeated() ? (access.*add)(&message, field, value) : (access.*set)(&message, field, value);
  };
  using R = google::protobuf::Reflection;
  for (int i = 0; i < type.field_count(); ++i) {
    const Field* field = type.field(i);
    const bool is_set =
        field->is_repeated() ? access.FieldSize(message, field) > 0 : access.HasField(message, field);
    const int number = field->number();
    if (field->cpp_type() == Field::CPPTYPE_MESSAGE) {
      if (!field->is_repeated()) {
        fill(*access.MutableMessage(&message, field));
      } else if (!is_set) {
        fill(*access.AddMessage(&message, field));
      }
      continue;
    }
    if (is_set || field->real_containing_oneof() != nullptr) {
      continue;
    }
    switch (field->cpp_type()) {
      case Field::CPPTYPE_INT64:
        put(field, &R::SetInt64, &R::AddInt64, std::int64_t{number});
        break;
      case Field::CPPTYPE_INT32:
        put(field, &R::SetInt32, &R::AddInt32, std::int32_t{number});
        break;
      case Field::CPPTYPE_UINT64:
        put(field, &R::SetUInt64, &R::AddUInt64, static_cast<std::uint64_t>(number));
        break;
      case Field::CPPTYPE_UINT32:
        put(field, &R::SetUInt32, &R::AddUInt32, static_cast<std::uint32_t>(number));
        break;
      case Field::CPPTYPE_DOUBLE:
        put(field, &R::SetDouble, &R::AddDouble, number + 0.5);
        break;
      case Field::CPPTYPE_BOOL:
        put(field, &R::SetBool, &R::AddBool, true);
        break;
      case Field::CPPTYPE_ENUM:
        put(field, &R::SetEnumValue, &R::AddEnumValue,
            field->enum_type()->value(field->enum_type()->value_count() - 1)->number());
        break;
      default:
        put(field, &R::SetString, &R::AddString,
            field->type() == Field::TYPE_BYTES ? std::string(32, static_cast<char>(number)) : field->name());
    }
  }
}

}  // namespace cubind::test
