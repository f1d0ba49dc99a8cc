#include "client/cubindctl/answers/own_terms.hpp"

#include "base/text.hpp"
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

}  // namespace cubind::ctl
