#include "plan/wire_fields.hpp"

#include "base/refuse.hpp"

namespace cubind {

std::string member_field(std::string_view field, std::string_view name) {
  return field.empty() ? std::string(name) : std::string(field) + "." + std::string(name);
}

std::string element_field(std::string_view field, std::string_view name, int index) {
  return element(member_field(field, name), index);
}

std::string element(std::string_view list, int index) {
  return std::string(list) + "[" + std::to_string(index) + "]";
}

std::string element_member(std::string_view list, int index, std::string_view member) {
  return element(list, index) + "." + std::string(member);
}

void refuse_unknown(std::string_view field, std::string_view what, int value) {
  refuse(field, std::to_string(value) + ": this version knows no such " + std::string(what));
}

}  // namespace cubind
