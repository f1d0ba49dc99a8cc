// The rules that every fact keeps. A number has the range of the unit that its field's name ends with.
#pragma once

#include <google/protobuf/message.h>

#include <string>

namespace cubind {

/// A time that something took: it is not zero.
bool is_duration(const google::protobuf::FieldDescriptor& field);
/// The largest number that the field may hold.
double most_of(const google::protobuf::FieldDescriptor& field);

/// Refuses a field that this version does not know, a number that is none, negative or too large, and a text
/// that is too long or not for a terminal. `field` names the message in errors.
void check_fact(const google::protobuf::Message& fact, const std::string& field);

}  // namespace cubind
