#include "bundle/bundle.hpp"

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "bundle/oci_image.hpp"
#include "plan/launch_digest.hpp"
#include "trust/serials.hpp"

namespace cubind {
namespace {

constexpr const char* kManifestLayer = "application/vnd.cubind.bundle.manifest.v1+json";
constexpr const char* kSignatureLayer = "application/vnd.cubind.bundle.signature.v1";
constexpr const char* kContentLayer = "application/vnd.cubind.bundle.content.v1.tar";

/// The layers of the file, not looked into yet.
struct Parts {
  std::string manifest, signature, content;
};

Parts parts_of(std::string_view bytes, const std::string& file) {
  if (bytes.size() > kMaxBundleBytes) {
    throw Error(ErrorCode::ResourceExhausted, file,
                "has more than the " + std::to_string(kMaxBundleBytes) + " bytes of a bundle");
  }
  std::vector<OciLayer> layers = read_oci_image(bytes, file);
  if (layers.size() != 3 || layers[0].media_type != kManifestLayer ||
      layers[1].media_type != kSignatureLayer || layers[2].media_type != kContentLayer) {
    throw Error(
        ErrorCode::InvalidArgument, file,
        "is an OCI image and not a bundle: its layers are not a manifest, a signature and a content of "
        "cubind");
  }
  return {std::move(layers[0].bytes), std::move(layers[1].bytes), std::move(layers[2].bytes)};
}

BundleTerms terms_of(const BundleManifest& manifest) {
  return {manifest.issuer, manifest.serial, manifest.expires};
}

void check_lines(const Bundle& bundle, const std::string& file) {
  if (bundle.manifest.records.size() != bundle.content.table.records.size()) {
    throw Error(ErrorCode::InvalidArgument, file + " manifest /records",
                "has " + std::to_string(bundle.manifest.records.size()) + " fingerprints for " +
                    std::to_string(bundle.content.table.records.size()) + " records");
  }
  for (std::size_t i = 0; i < bundle.manifest.records.size(); ++i) {
    const BundledVariant variant = variant_of(bundle.content, i, file);
    const Fingerprint own = fingerprint_of(bundle.content, i, variant, terms_of(bundle.manifest));
    if (print_fingerprint(own) != bundle.manifest.records[i].line) {
      throw Error(ErrorCode::DataLoss, file + " manifest /records/" + std::to_string(i) + "/fingerprint",
                  "is not that of the record, which is " + print_fingerprint(own));
    }
  }
}

Bundle checked(BundleManifest manifest, const KeyId& signer, const Parts& parts, const std::string& file) {
  const Members files = read_tar(parts.content, file);
  check_files(manifest, files, file);
  Bundle bundle{std::move(manifest), signer, read_content(files, file)};
  check_lines(bundle, file);
  return bundle;
}

void check_trusted(const BundleManifest& manifest, const Trust& trust, const TrustedKey& key,
                   const std::string& file) {
  for (std::size_t i = 0; i < manifest.records.size(); ++i) {
    const SignedLine& record = manifest.records[i];
    const std::string where = file + " manifest /records/" + std::to_string(i);
    if (!key.key.has_signed(record.line, record.signature)) {
      throw Error(
          ErrorCode::PermissionDenied, where,
          "its fingerprint does not have a signature of " + key.name + ", whose key signed the bundle");
    }
    trust.require_namespace(key, parse_fingerprint(record.line, where).name_space, where);
  }
}

std::string comment_of(const BundleTerms& terms) {
  return "cubind bundle " + terms.issuer + " " + std::to_string(terms.serial) + " until " +
         day_text(terms.expires);
}

}  // namespace

Fingerprint fingerprint_of(const BundleContent& content, std::size_t record, const BundledVariant& variant,
                           const BundleTerms& terms) {
  const TableRecord& row = content.table.records.at(record);
  const TableContext& context = row.context;
  Fingerprint print;
  print.name_space = row.name_space;
  print.kernel = context.kernel;
  print.artifact = variant.artifact.digest;
  print.problem = to_string(context.problem);
  print.bucket = variant.bucket;
  print.device_class = context.device_class;
  print.policy = context.policy;
  print.toolchain = context.toolchain.name;
  print.architecture = context.architecture;
  print.configuration = to_string(context.configuration);
  print.numerics = row.numerics;
  print.launches = launch_digest(variant.launches);
  print.cubin = context.artifact;
  print.cubin_bytes = content.cubins.at(context.artifact).size();
  print.evidence = to_string(row.evidence);
  print.provisional = row.provisional;
  print.issuer = terms.issuer;
  print.serial = terms.serial;
  print.expires = terms.expires;
  return print;
}

std::string print_bundle(const BundleContent& content, const BundleTerms& terms, const SecretKey& key) {
  if (!is_issuer(terms.issuer) || terms.serial == 0) {
    throw Error(ErrorCode::InvalidArgument, "bundle",
                "needs an issuer of letters, digits, '.', '-' and '_', and a serial of at least 1");
  }
  const Members files = print_content(content);
  BundleManifest manifest{terms.issuer, terms.serial, terms.expires, listed(files), {}};
  for (std::size_t i = 0; i < content.table.records.size(); ++i) {
    const BundledVariant variant = variant_of(content, i, "bundle");
    std::string line = print_fingerprint(fingerprint_of(content, i, variant, terms));
    const Signature signature = key.sign(line);
    manifest.records.push_back({std::move(line), signature});
  }
  const std::string text = print_manifest(manifest);
  return print_oci_image({{kManifestLayer, text},
                          {kSignatureLayer, print_signature_file(key, text, comment_of(terms))},
                          {kContentLayer, write_tar(files)}});
}

Bundle read_bundle(std::string_view bytes, const std::string& file) {
  const Parts parts = parts_of(bytes, file);
  const SignatureFile signature = parse_signature_file(parts.signature, file + " signature");
  return checked(parse_manifest(parts.manifest, file + " manifest"), signature.signature.key, parts, file);
}

Bundle verify_bundle(std::string_view bytes, const std::string& file, const Trust& trust,
                     std::chrono::system_clock::time_point now) {
  const Parts parts = parts_of(bytes, file);
  const SignatureFile signature = parse_signature_file(parts.signature, file + " signature");
  const TrustedKey& key = trust.key_of(signature.signature.key, now, file);
  if (!has_signed(key.key, parts.manifest, signature)) {
    throw Error(ErrorCode::PermissionDenied, file,
                "the signature of its manifest is not " + key.name +
                    "'s: the bundle was changed after it was signed");
  }
  BundleManifest manifest = parse_manifest(parts.manifest, file + " manifest");
  if (manifest.expires <= now) {
    throw Error(ErrorCode::FailedPrecondition, file,
                "has expired on " + day_text(manifest.expires) + ": get a newer one from " + manifest.issuer);
  }
  check_trusted(manifest, trust, key, file);
  return checked(std::move(manifest), signature.signature.key, parts, file);
}

}  // namespace cubind
