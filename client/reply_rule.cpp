#include "client/reply_rule.hpp"

#include "tuner/plan/wire.hpp"

namespace cubind {

RuleParts rule_parts(const v1::GetVariantReply& reply) {
  RuleParts parts;
  parts.kernel = reply.kernel();
  parts.asked = problem_from_wire(reply.problem(), "problem");
  parts.configuration = configuration_from_wire(reply.configuration(), "configuration");
  for (const v1::Interval& interval : reply.rule().intervals()) {
    parts.intervals.push_back({interval.dim(), interval.lower(), interval.upper()});
  }
  for (const v1::Problem& problem : reply.rule().own_records()) {
    parts.own_records.push_back(problem_from_wire(problem, "rule.own_records"));
  }
  parts.conditions.assign(reply.rule().conditions().begin(), reply.rule().conditions().end());
  parts.plan = plan_template_from_wire(reply.rule(), "rule");
  parts.device = device_constants_from_wire(reply.rule().device_constants(), "rule");
  return parts;
}

}  // namespace cubind
