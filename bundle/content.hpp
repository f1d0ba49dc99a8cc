// What a bundle holds for its records, as structs and as files:
//
//   table.json               the records, as `cubindctl export` prints them, without trials
//   artifacts.json           for each record, in the table's order: symbols and resources of its cubin
//   kernels/NAME/spec/...    a spec as NAME.json, and its sources
//   kernels/NAME/common/...  its sources of "../common"
//   cubins/SHA256            a cubin
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bundle/archive.hpp"
#include "tuner/spec/kernel_spec.hpp"
#include "tuner/table/table.hpp"

namespace cubind {

/// What only the compile of a record's cubin knows.
struct BundledArtifact {
  std::vector<std::string> symbols;  // lowered names, in the order of the artifact key's entries
  std::vector<EntryResources> resources;
  bool operator==(const BundledArtifact&) const = default;
};

struct BundleContent {
  Table table;                                                       // in its printed order, without trials
  std::vector<BundledArtifact> artifacts;                            // of table.records
  std::map<std::string, std::shared_ptr<const KernelSpec>> kernels;  // by name
  std::map<Digest, std::string> cubins;
};

/// Throws InvalidArgument for a spec whose sources lie above the folder that holds its own.
Members print_content(const BundleContent& content);
/// The part below kernels/.
Members kernel_files(const BundleContent& content);
/// Throws InvalidArgument or DataLoss at "WHERE PATH": each record has its kernel, its artifact and its
/// cubin, and nothing else is there.
BundleContent read_content(const Members& files, const std::string& where);

/// Of a kernel's folder in the bundle, "kernels/NAME", the folder that a daemon reads its spec from.
std::string kernel_folder(const std::string& name);

/// The compiled variant behind a record.
struct BundledVariant {
  Key artifact;
  std::vector<std::string> entries;
  PlanTemplate launches;  // with symbols
  std::string bucket;     // as in a fingerprint
};

/// Throws FailedPrecondition at "WHERE /records/3" where the spec is another revision than the one that was
/// measured, and InvalidArgument where the artifact's symbols are not those of its entries.
BundledVariant variant_of(const BundleContent& content, std::size_t record, const std::string& where);
/// Whether the record was measured with this revision of the spec.
bool is_of_revision(const TableRecord& record, const KernelSpec& spec, const DeviceFacts& facts);
/// Throws as the table's reader does where a device is missing.
const DeviceFacts& facts_of(const Table& table, const Digest& device_class);

}  // namespace cubind
