#include "bundle/manifest.hpp"

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/json.hpp"
#include "base/json_node.hpp"
#include "base/text.hpp"
#include "trust/base64.hpp"
#include "trust/serials.hpp"

namespace cubind {
namespace {

constexpr const char* kFormat = "cubind-bundle/1";
constexpr std::int64_t kMostBytes = INT64_MAX;

BundleManifest::File file_of(const JsonNode& node) {
  node.expect_keys({"path", "sha256", "bytes"});
  const auto digest = Digest::from_hex(node.at("sha256").as_string());
  if (!digest) {
    node.at("sha256").fail("is not a SHA-256 digest: 64 hexadecimal digits");
  }
  return {node.at("path").as_nonempty_string(), *digest,
          static_cast<std::uint64_t>(node.at("bytes").as_int64(0, kMostBytes))};
}

SignedLine line_of(const JsonNode& node) {
  node.expect_keys({"fingerprint", "signature"});
  const auto signature = Signature::unpack(from_base64(node.at("signature").as_string()).value_or(""));
  if (!signature) {
    node.at("signature").fail("is not a prehashed signature of minisign");
  }
  return {node.at("fingerprint").as_nonempty_string(), *signature};
}

}  // namespace

std::string print_manifest(const BundleManifest& manifest) {
  OrderedJson files = OrderedJson::array();
  for (const BundleManifest::File& file : manifest.files) {
    files.push_back({{"path", file.path}, {"sha256", file.digest.hex()}, {"bytes", file.bytes}});
  }
  OrderedJson records = OrderedJson::array();
  for (const SignedLine& record : manifest.records) {
    records.push_back({{"fingerprint", record.line}, {"signature", base64(record.signature.packed())}});
  }
  return OrderedJson{{"format", kFormat},         {"issuer", manifest.issuer},
                     {"serial", manifest.serial}, {"expires", iso8601_utc(manifest.expires)},
                     {"files", std::move(files)}, {"records", std::move(records)}}
             .dump(1) +
         "\n";
}

BundleManifest parse_manifest(std::string_view text, const std::string& where) {
  const OrderedJson document = parse_json_strict(text, where);
  const JsonNode root(document, where);
  root.expect_keys({"format", "issuer", "serial", "expires", "files", "records"});
  if (root.at("format").as_string() != kFormat) {
    root.at("format").fail(quoted(root.at("format").as_string()) + " is not " + kFormat +
                           ": a newer cubind may read it");
  }
  BundleManifest manifest;
  manifest.issuer = root.at("issuer").as_string();
  if (!is_issuer(manifest.issuer)) {
    root.at("issuer").fail(quoted(manifest.issuer) + " is not an issuer: letters, digits, '.', '-', '_'");
  }
  manifest.serial = static_cast<std::uint64_t>(root.at("serial").as_int64(1, kMostBytes));
  const auto expires = parse_iso8601_utc(root.at("expires").as_string());
  if (!expires) {
    root.at("expires").fail("is not a time in UTC");
  }
  manifest.expires = *expires;
  for (const JsonNode& file : root.at("files").elements()) {
    manifest.files.push_back(file_of(file));
  }
  for (const JsonNode& record : root.at("records").elements()) {
    manifest.records.push_back(line_of(record));
  }
  return manifest;
}

std::vector<BundleManifest::File> listed(const Members& files) {
  std::vector<BundleManifest::File> list;
  for (const auto& [path, text] : files) {
    list.push_back({path, Digest::of(text), text.size()});
  }
  return list;
}

void check_files(const BundleManifest& manifest, const Members& files, const std::string& where) {
  for (const BundleManifest::File& file : manifest.files) {
    const auto found = files.find(file.path);
    if (found == files.end()) {
      throw Error(ErrorCode::DataLoss, where, "lacks the file " + quoted(file.path) + " of its manifest");
    }
    if (found->second.size() != file.bytes || Digest::of(found->second) != file.digest) {
      throw Error(ErrorCode::DataLoss, where + " " + file.path,
                  "is not the file that was signed: it does not have the digest of the manifest");
    }
  }
  if (manifest.files != listed(files)) {
    throw Error(ErrorCode::InvalidArgument, where,
                "holds files that its manifest does not list, or lists twice");
  }
}

}  // namespace cubind
