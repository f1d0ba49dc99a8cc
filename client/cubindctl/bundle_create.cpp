// cubindctl bundle create: the daemon's records with their specs and cubins, signed.
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "base/zstd.hpp"
#include "bundle/bundle.hpp"
#include "client/connection.hpp"
#include "client/cubindctl/bundle_output.hpp"
#include "client/cubindctl/commands.hpp"
#include "client/cubindctl/known_specs.hpp"
#include "client/cubindctl/table_output.hpp"
#include "schemas/limits.hpp"
#include "tuner/plan/evidence_wire.hpp"

namespace cubind::ctl {
namespace {

/// Rows of the daemon's table that the bundle does not have.
struct LeftOut {
  std::uint32_t without_spec = 0, of_other_revision = 0, without_cubin = 0;
};

Table exported_table(const Connection& connection, const BundleCreateOptions& options,
                     const CommonOptions& common) {
  const v1::TableChunk table = connection.export_table(export_request(options.records), common.deadline());
  tell_what_is_left_out(table);
  return read_table(table.json(), "the daemon's table");
}

class Collector {
 public:
  Collector(const Connection& connection, const BundleCreateOptions& options, const CommonOptions& common)
      : connection_(connection), common_(common), known_(known_specs(options.specs)) {}

  BundleContent collect(const Table& table) {
    for (const TableRecord& record : table.records) {
      add(record, facts_of(table, record.context.device_class));
    }
    if (content_.table.records.empty()) {
      tell();
      throw Error(ErrorCode::FailedPrecondition, "bundle",
                  "the daemon has no record for it: `cubindctl export` shows what there is");
    }
    for (const TableDevice& device : table.devices) {
      if (std::ranges::any_of(content_.table.records, [&](const TableRecord& record) {
            return record.context.device_class == device.device_class;
          })) {
        content_.table.devices.push_back(device);
      }
    }
    tell();
    return std::move(content_);
  }

 private:
  void add(const TableRecord& record, const DeviceFacts& facts) {
    const auto spec = known_.specs.find(record.context.kernel);
    if (spec == known_.specs.end()) {
      ++left_out_.without_spec;
    } else if (!is_of_revision(record, *spec->second, facts)) {
      ++left_out_.of_other_revision;
    } else if (auto artifact = artifact_of(record.context.artifact)) {
      content_.table.records.push_back(record);
      content_.artifacts.push_back(std::move(*artifact));
      content_.kernels[spec->first] = spec->second;
    } else {
      ++left_out_.without_cubin;
    }
  }

  /// Absent: the daemon does not have the cubin.
  std::optional<BundledArtifact> artifact_of(const Digest& cubin) {
    if (cubin.is_zero()) {
      return std::nullopt;
    }
    try {
      const StoredArtifact stored = connection_.stored_artifact(cubin, common_.deadline());
      if (stored.info.symbols().empty()) {
        throw Error(ErrorCode::FailedPrecondition, connection_.address(),
                    "the daemon does not say what the cubin " + cubin.hex() +
                        " holds: it is older than this cubindctl, update it");
      }
      content_.cubins[cubin] = zstd_decompress(stored.zstd, kMaxCubinBytes);
      return BundledArtifact{{stored.info.symbols().begin(), stored.info.symbols().end()},
                             resources_from_wire(stored.info.entries())};
    } catch (const Error& error) {
      if (error.code() != ErrorCode::NotFound) {
        throw;
      }
      return std::nullopt;
    }
  }

  void tell() const {
    const auto say = [](std::uint32_t rows, const char* which, const char* remedy) {
      if (rows > 0) {
        std::cerr << "left out " << counted(rows, "record") << " " << which << ": " << remedy << "\n";
      }
    };
    say(left_out_.without_spec, "of unknown kernels", "--kernels FOLDER names the folder of their specs");
    say(left_out_.of_other_revision, "of another revision of their kernel",
        "--kernels FOLDER names the folder of the spec that was measured");
    say(left_out_.without_cubin, "whose cubin the daemon does not have",
        "`cubindctl verify KERNEL` compiles and measures them again");
  }

  const Connection& connection_;
  const CommonOptions& common_;
  const KnownSpecs known_;
  BundleContent content_;
  LeftOut left_out_;
};

std::chrono::system_clock::time_point future_expiry(const std::string& text) {
  const std::string option = "--expires " + text;
  const auto time = parse_expiry(text, option);
  if (time <= std::chrono::system_clock::now()) {
    throw Error(ErrorCode::InvalidArgument, option, "has passed: nothing would accept the bundle");
  }
  return time;
}

}  // namespace

ExitCode run(const BundleCreateOptions& options, const CommonOptions& common) {
  const BundleTerms terms{options.issuer, options.serial, future_expiry(options.expires)};
  const SecretKey key = SecretKey::read(options.key);
  const Connection connection(resolve_address(common.address));
  const BundleContent content =
      Collector(connection, options, common).collect(exported_table(connection, options, common));
  const std::string bytes = print_bundle(content, terms, key);
  const Bundle bundle = read_bundle(bytes, options.output);
  write_output(options.output, bytes);
  print_bundle_summary(bundle, options.output, key.public_key().id().text(), common);
  return ExitCode::Ok;
}

}  // namespace cubind::ctl
