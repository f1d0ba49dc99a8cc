// The signed part of a bundle: its issuer, serial, expiry and content.
//
//   {"format": "cubind-bundle/1", "issuer": "acme", "serial": 7, "expires": "2027-03-01T00:00:00.000Z",
//    "files": [{"path": "table.json", "sha256": "64 digits", "bytes": 1234}],
//    "records": [{"fingerprint": "cubind/1;...", "signature": "RUSTusczmS7Q..."}]}
//
// Files are sorted by path, records as in the table. The same manifest gives the same bytes.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.hpp"
#include "bundle/archive.hpp"
#include "trust/fingerprint.hpp"

namespace cubind {

struct BundleManifest {
  struct File {
    std::string path;
    Digest digest;
    std::uint64_t bytes = 0;
    bool operator==(const File&) const = default;
  };
  std::string issuer;
  std::uint64_t serial = 0;
  std::chrono::system_clock::time_point expires{};
  std::vector<File> files;
  std::vector<SignedLine> records;
  bool operator==(const BundleManifest&) const = default;
};

std::string print_manifest(const BundleManifest& manifest);
/// Throws InvalidArgument at "WHERE /records/3/signature".
BundleManifest parse_manifest(std::string_view text, const std::string& where);

std::vector<BundleManifest::File> listed(const Members& files);
/// Throws InvalidArgument or DataLoss at `where` if these are not the listed files.
void check_files(const BundleManifest& manifest, const Members& files, const std::string& where);

}  // namespace cubind
