#include "server/served_bundle.hpp"

#include "base/text.hpp"
#include "base/zstd.hpp"
#include "server/store/store.hpp"
#include "server/table/table_import.hpp"
#include "trust/serials.hpp"

namespace cubind {
namespace {

namespace fs = std::filesystem;

Bundle verified(const fs::path& file, const fs::path& trust, const fs::path& serials,
                std::chrono::system_clock::time_point now) {
  Bundle bundle = verify_bundle(read_file(file, kMaxBundleBytes), file.string(), read_trust_file(trust), now);
  Serials(serials).accept(bundle.manifest.issuer, bundle.manifest.serial, file.string());
  return bundle;
}

void write_kernels(const BundleContent& content, const fs::path& folder) {
  for (const auto& [path, text] : kernel_files(content)) {
    create_folders((folder / path).parent_path(), 0700);
    write_file_atomic(folder / path, text, 0600);
  }
}

ArtifactRow artifact_of(const BundleContent& content, std::size_t record, const std::string& where) {
  const TableContext& context = content.table.records.at(record).context;
  BundledVariant variant = variant_of(content, record, where);
  ArtifactRow row;
  row.key = std::move(variant.artifact);
  row.cubin = context.artifact;
  row.kernel = context.kernel;
  row.architecture = context.architecture;
  row.cubin_bytes = content.cubins.at(context.artifact).size();
  row.entries = std::move(variant.entries);
  row.entry_symbols = content.artifacts.at(record).symbols;
  row.resources = content.artifacts.at(record).resources;
  row.toolchain = context.toolchain;
  return row;
}

}  // namespace

ServedBundle::ServedBundle(const Config& config, std::chrono::system_clock::time_point now)
    : file_(config.bundle),
      folder_("cubind-bundle"),
      bundle_(verified(config.bundle, config.trust, config.database.string() + ".serials", now)) {
  write_kernels(bundle_.content, folder_.path());
}

Config ServedBundle::settings(Config config) const {
  config.database = folder_.path() / "store.db";
  config.kernels.clear();
  for (const auto& [name, spec] : bundle_.content.kernels) {
    config.kernels.push_back(folder_.path() / kernel_folder(name));
  }
  config.headers.clear();
  config.shipped_tables = false;
  config.idle_verify.reset();
  config.local_agent = false;
  return config;
}

void ServedBundle::put_into(Store& store) const {
  const BundleContent& content = bundle_.content;
  store.write([&](StoreWriter& writer) {
    for (const auto& [digest, cubin] : content.cubins) {
      writer.put_blob({digest, cubin.size(), zstd_compress(cubin)});
    }
    for (std::size_t i = 0; i < content.table.records.size(); ++i) {
      writer.put_artifact(artifact_of(content, i, file_.string()));
    }
    put_own_records(writer, content.table, file_.string());
  });
}

SignedRecords ServedBundle::records() const {
  SignedRecords records;
  for (std::size_t i = 0; i < bundle_.content.table.records.size(); ++i) {
    const TableRecord& record = bundle_.content.table.records[i];
    records.add(record_row(record, file_.string()), bundle_.manifest.records.at(i));
  }
  return records;
}

std::string ServedBundle::text() const {
  const BundleManifest& manifest = bundle_.manifest;
  return file_.string() + ": " + manifest.issuer + " " + std::to_string(manifest.serial) + " until " +
         day_text(manifest.expires) + ", " + counted(manifest.records.size(), "record");
}

}  // namespace cubind
