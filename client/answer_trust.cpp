#include "client/answer_trust.hpp"

#include <cstdlib>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "plan/launch_digest.hpp"

namespace cubind {
namespace {

constexpr const char* kVariable = "CUBIND_TRUST";

void require_same(const std::string& field, const std::string& is, const std::string& is_signed) {
  if (is != is_signed) {
    throw Error(ErrorCode::DataLoss, field,
                "the answer has " + quoted(is) + ", and its fingerprint is signed for " + quoted(is_signed));
  }
}

void require_same(const std::string& field, const Digest& is, const Digest& is_signed) {
  require_same(field, is.hex(), is_signed.hex());
}

std::string policy_of(const Asked& asked, const std::string& is_signed) {
  // The method that flushes a cold L2 is the daemon's choice.
  const std::string cold = is_signed.starts_with("cold/") ? is_signed.substr(0, is_signed.find(',')) : "cold";
  return (asked.warm_l2 ? "warm" : cold) + (asked.graph_launch ? ",graph" : ",stream");
}

/// "N=2049..4096,D=64..64" as the intervals of a rule.
std::vector<DimInterval> intervals_of(const std::string& bucket) {
  std::vector<DimInterval> intervals;
  for (std::size_t begin = 0; begin < bucket.size();) {
    const std::size_t end = std::min(bucket.find(',', begin), bucket.size());
    const std::string part = bucket.substr(begin, end - begin);
    const std::size_t equals = part.find('='), dots = part.find("..");
    if (equals == std::string::npos || dots == std::string::npos || dots < equals) {
      throw Error(ErrorCode::DataLoss, "fingerprint", quoted(part) + " is not an interval of a dim");
    }
    DimInterval& interval = intervals.emplace_back();
    interval.dim = part.substr(0, equals);
    interval.lower = std::strtoll(part.c_str() + equals + 1, nullptr, 10);
    interval.upper = std::strtoll(part.c_str() + dots + 2, nullptr, 10);
    begin = end + 1;
  }
  return intervals;
}

/// The rule answers no problem outside of the bucket that was signed.
void check_bucket(const RuleParts& rule, const std::string& bucket) {
  const std::vector<DimInterval> is_signed = intervals_of(bucket);
  const auto refuse = [&] {
    throw Error(
        ErrorCode::DataLoss, "rule.intervals",
        "the answer for " + to_string(rule.asked) + " goes beyond the bucket that is signed, " + bucket);
  };
  if (is_signed.size() != rule.asked.dims.size() || rule.intervals.size() != is_signed.size()) {
    refuse();
  }
  for (std::size_t i = 0; i < is_signed.size(); ++i) {
    const DimInterval& given = rule.intervals[i];
    const NamedValue& dim = rule.asked.dims[i];
    const bool within = given.dim == is_signed[i].dim && dim.name == given.dim &&
                        given.lower >= is_signed[i].lower && given.upper <= is_signed[i].upper &&
                        dim.value >= given.lower && dim.value <= given.upper;
    if (!within) {
      refuse();
    }
  }
}

void check_question(const Asked& asked, const Told& told, const Fingerprint& print) {
  const RuleParts& rule = told.rule;
  require_same("kernel", rule.kernel, print.kernel);
  require_same("namespace", asked.name_space, print.name_space);
  require_same("policy", policy_of(asked, print.policy), print.policy);
  require_same("numerics", asked.numerics, print.numerics);
  require_same("device_class", told.device_class, print.device_class);
  require_same("provenance.measured_device_class", told.measured_device_class, print.device_class);
  require_same("provenance.measured_problem", to_string(told.measured_problem), print.problem);
  if (!told.match.within({Departure::Bucket})) {
    throw Error(ErrorCode::PermissionDenied, "provenance.departures",
                "the answer is " + to_string(told.match) +
                    ", and a fingerprint is signed for its bucket alone: ask with "
                    "accept=bucket");
  }
  Problem within = told.measured_problem;
  within.dims = rule.asked.dims;
  require_same("problem", to_string(rule.asked), to_string(within));
  check_bucket(rule, print.bucket);
}

void check_variant(const Told& told, std::string_view cubin, const Fingerprint& print) {
  require_same("configuration", to_string(told.rule.configuration), print.configuration);
  require_same("artifact.key", told.artifact, print.artifact);
  require_same("artifact.toolchain", told.toolchain, print.toolchain);
  require_same("artifact.architecture", told.architecture, print.architecture);
  require_same("artifact.digest", Digest::of(cubin), print.cubin);
  require_same("artifact.cubin_bytes", std::to_string(cubin.size()), std::to_string(print.cubin_bytes));
  require_same("rule", launch_digest(told.rule.plan), print.launches);
  require_same("provenance.evidence", std::string(to_string(told.evidence)), print.evidence);
  require_same("provenance.provisional", told.provisional ? "true" : "false",
               print.provisional ? "true" : "false");
}

}  // namespace

AnswerTrust::AnswerTrust(const std::string& file, std::filesystem::path serials)
    : trust_(read_trust_file(file)), serials_(std::move(serials)) {}

std::shared_ptr<const AnswerTrust> AnswerTrust::of(const std::string& file) {
  const char* const variable = std::getenv(kVariable);
  const std::string named = file.empty() && variable != nullptr ? variable : file;
  return named.empty() ? nullptr : std::make_shared<const AnswerTrust>(named, user_data_dir() / "serials");
}

void AnswerTrust::check(const Asked& asked, const Told& told, std::string_view cubin,
                        std::chrono::system_clock::time_point now) const {
  const std::string where = "the answer for " + told.rule.kernel + " " + to_string(told.rule.asked);
  const auto signature = Signature::unpack(told.signature);
  if (told.fingerprint.empty() || !signature) {
    throw Error(
        ErrorCode::PermissionDenied, where,
        "is not signed, and " + trust_.file() +
            " is the trust file: ask a daemon that serves a bundle with this record (cubind --bundle)");
  }
  const TrustedKey& key = trust_.key_of(signature->key, now, where);
  if (!key.key.has_signed(told.fingerprint, *signature)) {
    throw Error(ErrorCode::PermissionDenied, where, "has a fingerprint that " + key.name + " has not signed");
  }
  const Fingerprint print = parse_fingerprint(told.fingerprint, "fingerprint");
  trust_.require_namespace(key, print.name_space, where);
  if (print.expires <= now) {
    throw Error(ErrorCode::FailedPrecondition, where,
                "comes from a bundle that has expired on " + day_text(print.expires) +
                    ": get a newer one from " + print.issuer);
  }
  check_question(asked, told, print);
  check_variant(told, cubin, print);
  serials_.accept(print.issuer, print.serial, where);
}

}  // namespace cubind
