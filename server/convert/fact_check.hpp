// What every fact of an agent has to keep, whatever it is a fact of.
#pragma once

#include <google/protobuf/message.h>

#include <string>

namespace cubind {

/// Refuses a field that this version does not know, a number that is none, negative or too large for the unit
/// that its field's name ends with, and a text that is too long or not for a terminal. `field` names the
/// message in errors.
void check_fact(const google::protobuf::Message& fact, const std::string& field);

}  // namespace cubind
