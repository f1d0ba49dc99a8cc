#include "server/convert/limits.hpp"

#include <algorithm>

#include "base/refuse.hpp"
#include "base/text.hpp"
#include "plan/wire_fields.hpp"

namespace cubind {
namespace {

void check_names(const google::protobuf::RepeatedPtrField<v1::NamedValue>& values, const std::string& list) {
  check_count(values.size(), kMaxNames, list);
  for (int i = 0; i < values.size(); ++i) {
    check_name(values[i].name(), element_member(list, i, "name"));
  }
}

}  // namespace

void check_texts(const google::protobuf::RepeatedPtrField<std::string>& texts, std::string_view field,
                 std::size_t max) {
  for (const std::string& text : texts) {
    check_text(text, field, max);
  }
}

void check_name(std::string_view text, std::string_view field) {
  if (text.empty()) {
    refuse(field, "is empty");
  }
  check_text(text, field);
}

void check_count(int count, int max, std::string_view field) {
  if (count > max) {
    refuse(field, "has " + std::to_string(count) + " elements, the limit is " + std::to_string(max));
  }
}

void check_problem(const v1::Problem& problem, const std::string& field) {
  check_names(problem.dims(), field + ".dims");
  check_names(problem.flags(), field + ".flags");
  check_count(problem.types_size(), kMaxNames, field + ".types");
  for (int i = 0; i < problem.types_size(); ++i) {
    check_name(problem.types(i).name(), element_member(field + ".types", i, "name"));
    check_name(problem.types(i).type(), element_member(field + ".types", i, "type"));
  }
  check_text(problem.scenario(), field + ".scenario");
}

void check_facts(const v1::DeviceFacts& facts, const std::string& field) {
  check_text(facts.name(), field + ".name");
  check_text(facts.mig_profile(), field + ".mig_profile");
  check_text(facts.replay_table(), field + ".replay_table");
}

void check_device(const v1::Device& device, const std::string& field) {
  if (device.has_facts()) {
    check_facts(device.facts(), field + ".facts");
  } else if (device.has_label()) {
    check_name(device.label(), field + ".label");
  } else {
    refuse(field, "is empty: give facts or a label");
  }
  check_text(device.driver().version(), field + ".driver.version");
}

}  // namespace cubind
