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

/// The largest file that is read.
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

/// The file. The same content, terms and key give the same bytes. Throws as variant_of() does, and
/// InvalidArgument for an issuer or a serial that no manifest may have.
std::string print_bundle(const BundleContent& content, const BundleTerms& terms, const SecretKey& key);

/// Checks all but the signatures: to look at a bundle of an unknown key. `file` is for messages.
Bundle read_bundle(std::string_view bytes, const std::string& file);

/// Throws PermissionDenied for a key that is unknown or has expired, for a signature that is not the key's
/// and for a namespace that the key may not sign for; FailedPrecondition for a bundle that has expired; and
/// what read_bundle() throws. Nothing of the content is read before its signature holds.
Bundle verify_bundle(std::string_view bytes, const std::string& file, const Trust& trust,
                     std::chrono::system_clock::time_point now);

/// Of the record in a bundle with these terms.
Fingerprint fingerprint_of(const BundleContent& content, std::size_t record, const BundledVariant& variant,
                           const BundleTerms& terms);

}  // namespace cubind
