#include "client/cubindctl/answers/own_terms.hpp"

#include <utility>

#include "base/text.hpp"
#include "plan/wire.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind::ctl {

std::vector<std::string> own_terms(const v1::Policy& policy, const v1::Numerics& numerics,
                                   const std::string& name_space) {
  std::vector<std::string> terms;
  if (const Policy own = policy_from_wire(policy); own != Policy()) {
    terms.push_back(to_string(own));
  }
  if (const Numerics own = numerics_from_wire(numerics); own != Numerics()) {
    terms.push_back(to_string(own));
  }
  if (!name_space.empty()) {
    terms.push_back("namespace " + name_space);
  }
  return terms;
}

std::string remarks_of(const std::vector<std::string>& parts) {
  return parts.empty() ? "-" : join(parts, "; ");
}

std::string marks_of(const v1::ListedRecord& record) {
  std::vector<std::string> marks = own_terms(record.policy(), record.numerics(), record.namespace_());
  const v1::Timing& timing = record.provenance().timing();
  for (const auto& [name, is_set] :
       {std::pair{"provisional", record.provenance().provisional()},
        std::pair{"throttled", timing.throttled()}, std::pair{"contended", timing.contended()}}) {
    if (is_set) {
      marks.emplace_back(name);
    }
  }
  return join(marks, ", ");
}

std::string configuration_text(const v1::ListedRecord& record) {
  return to_string(configuration_from_wire(record.configuration(), "configuration"));
}

}  // namespace cubind::ctl
