// The rules that every fact keeps. A number has the range of the unit that its field's name ends with.
#pragma once

#include <google/protobuf/message.h>

#include <string>

namespace cubind {

/// Refuses a number outside of the field's range. `where` names it in errors.
void check_number(const google::protobuf::FieldDescriptor& field, double value, const std::string& where);

/// Refuses a field that this version does not know, a number that is none, negative or too large, and a text
/// that is too long or not for a terminal. `field` names the message in errors.
void check_fact(const google::protobuf::Message& fact, const std::string& field);

}  // namespace cubind
