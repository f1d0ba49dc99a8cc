#include "client/signed_reply.hpp"

#include "tuner/plan/answer_wire.hpp"
#include "tuner/plan/wire.hpp"

namespace cubind {
namespace {

std::string numerics_text(const v1::Numerics& numerics) {
  switch (numerics.kind()) {
    case v1::Numerics::INVARIANT:
      return "invariant:" + numerics.invariant_dim();
    case v1::Numerics::REPRODUCIBLE:
      return "reproducible";
    default:
      return "tolerance";
  }
}

}  // namespace

ClaimedAnswer claimed_answer(const v1::GetVariantRequest& request, const v1::GetVariantReply& reply,
                             const std::string& cubin) {
  const v1::Provenance& provenance = reply.provenance();
  ClaimedAnswer answer;
  answer.name_space = request.namespace_();
  answer.warm_l2 = request.policy().warm_l2();
  answer.graph_launch = request.policy().graph_launch();
  answer.numerics = numerics_text(request.numerics());
  answer.fingerprint = reply.fingerprint();
  answer.signature = reply.signature();
  if (answer.fingerprint.empty()) {
    return answer;  // the rest may be absent too
  }
  answer.match = to_string(match_from_wire(provenance.departures(), "provenance.departures"));
  answer.measured_problem = problem_from_wire(provenance.measured_problem(), "provenance.measured_problem");
  answer.device_class = digest_from_wire(reply.device_class(), "device_class");
  answer.measured_device_class =
      digest_from_wire(provenance.measured_device_class(), "provenance.measured_device_class");
  answer.artifact = digest_from_wire(reply.artifact().key(), "artifact.key");
  answer.toolchain = reply.artifact().toolchain();
  answer.architecture = reply.artifact().architecture();
  answer.cubin = Digest::of(cubin);
  answer.cubin_bytes = cubin.size();
  answer.evidence = to_string(evidence_from_wire(provenance.evidence(), "provenance.evidence"));
  answer.provisional = provenance.provisional();
  return answer;
}

}  // namespace cubind
