// A bundle: records with their specs and the measured cubins, signed, in one file. The file is an OCI image
// archive with three layers: the manifest, its signature as minisign writes it, and a tar of the content.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "bundle/content.hpp"
#include "bundle/manifest.hpp"
#include "trust/fingerprint.hpp"
#include "trust/trust_file.hpp"

namespace cubind {

/// The largest file that can be read.
inline constexpr std::uint64_t kMaxBundleBytes = std::uint64_t{1} << 30;

struct BundleTerms {
  std::string issuer;
  std::uint64_t serial = 0;  // grows from one bundle of the issuer to the next
  std::chrono::system_clock::time_point expires{};
};

struct Bundle {
  BundleManifest manifest;
  KeyId signer;
  BundleContent content;
};

/// The file's bytes. The same content, terms and key give the same bytes. Throws like variant_of(), and
/// InvalidArgument for an invalid issuer or serial.
std::string print_bundle(const BundleContent& content, const BundleTerms& terms, const SecretKey& key);

/// Checks everything except the signatures, to inspect a bundle of an unknown key. `file` is for messages.
Bundle read_bundle(std::string_view bytes, const std::string& file);

/// Throws PermissionDenied for an unknown or expired key, for a wrong signature and for a namespace that the
/// key may not sign for; FailedPrecondition for an expired bundle; and the errors of read_bundle(). Verifies
/// the signature before it reads any content.
Bundle verify_bundle(std::string_view bytes, const std::string& file, const Trust& trust,
                     std::chrono::system_clock::time_point now);

/// The fingerprint of the record in a bundle with these terms.
Fingerprint fingerprint_of(const BundleContent& content, std::size_t record, const BundledVariant& variant,
                           const BundleTerms& terms);

}  // namespace cubind
