// A question and its reply as clients check and use them, read from the bytes of the messages: without
// protobuf's runtime, so that C++ and Python share one implementation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/digest.hpp"
#include "client/rule.hpp"
#include "plan/answer.hpp"

namespace cubind {

/// What an answer is checked against, of a v1.GetVariantRequest.
struct Asked {
  std::string kernel, name_space;
  Problem problem;  // its flags may stand among the dims, or be left out
  bool warm_l2 = false, graph_launch = false;
  std::string numerics;                                         // "tolerance", "reproducible", "invariant:N"
  std::optional<Match> accepted;                                // absent: every departure is
  std::optional<std::pair<std::string, std::uint64_t>> locked;  // store and number of the generation
};

/// What is checked and kept of a v1.GetVariantReply.
struct Told {
  RuleParts rule;
  Match match;
  Evidence evidence = Evidence::None;
  bool provisional = false;
  std::pair<std::string, std::uint64_t> generation;
  Problem measured_problem;
  Digest device_class;  // that was asked for
  Digest measured_device_class;
  Digest artifact;  // key
  std::string toolchain, architecture, job_id;
  std::string fingerprint, signature;  // packed
};

/// Each throws Error(DataLoss) for bytes that are no message, Error(InvalidArgument) at a field that does not
/// convert.
Asked read_asked(std::string_view request);
Told read_told(std::string_view reply);

/// Refuses a reply to another question: the right cubin for another question is as wrong as damaged bytes.
/// Throws Error(DataLoss) at the field that differs.
void check_reply(const Asked& asked, const Told& told);

/// Whether the answer will get better: a job runs behind it, and it is not the measured one of its bucket.
bool is_unsettled(const Told& told);

}  // namespace cubind
