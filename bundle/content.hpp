// A bundle's content for its records, as structs and as files:
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

/// The facts about a record's cubin that only its compile knows.
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

/// Throws InvalidArgument for a spec with sources above the folder that contains the spec's folder.
Members print_content(const BundleContent& content);
/// The part below kernels/.
Members kernel_files(const BundleContent& content);
/// Throws InvalidArgument or DataLoss at "WHERE PATH" unless each record has its kernel, artifact and cubin,
/// and there are no other files.
BundleContent read_content(const Members& files, const std::string& where);

/// For a kernel's folder in the bundle, "kernels/NAME", the folder that a daemon reads its spec from.
std::string kernel_folder(const std::string& name);

/// The compiled variant behind a record.
struct BundledVariant {
  Key artifact;
  std::vector<std::string> entries;
  PlanTemplate launches;  // with symbols
  std::string bucket;     // as in a fingerprint
};

/// Throws FailedPrecondition at "WHERE /records/3" if another revision of the spec was measured, and
/// InvalidArgument if the artifact's symbols do not belong to its entries.
BundledVariant variant_of(const BundleContent& content, std::size_t record, const std::string& where);
/// Whether the record was measured with this revision of the spec.
bool is_of_revision(const TableRecord& record, const KernelSpec& spec, const DeviceFacts& facts);
/// Throws like the table's reader if a device is missing.
const DeviceFacts& facts_of(const Table& table, const Digest& device_class);

}  // namespace cubind
