#include "client/cubindctl/judge/verdict_file.hpp"

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/json.hpp"

namespace cubind::ctl {
namespace {

constexpr const char* kSuffix = ".minisig";
const std::string kFormat = "cubind-verdict/1";

}  // namespace

void write_verdict(const std::string& text, const std::string& file, const std::optional<SecretKey>& key) {
  write_output(file, text);
  if (key) {
    write_output(file + kSuffix, print_signature_file(*key, text, "cubind verdict"));
  }
}

SignedVerdict verify_verdict(const std::string& file, const Trust& trust) {
  const std::string text = read_file(file);
  const std::string beside = file + kSuffix;
  const SignatureFile signature = parse_signature_file(read_file(beside), beside);
  const TrustedKey& key = trust.key_of(signature.signature.key, std::chrono::system_clock::now(), beside);
  if (!has_signed(key.key, text, signature)) {
    throw Error(ErrorCode::PermissionDenied, file, "was changed after " + key.name + " signed it");
  }
  OutputJson verdict = parse_json_strict(text, file);
  if (!verdict.is_object() || verdict.value("format", "") != kFormat) {
    throw Error(ErrorCode::InvalidArgument, file, "is no verdict of the format " + kFormat);
  }
  trust.require_namespace(key, verdict.value("namespace", ""), beside);
  return {std::move(verdict), key.name + " (" + signature.signature.key.text() + ")"};
}

}  // namespace cubind::ctl
