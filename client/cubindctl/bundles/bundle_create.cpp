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
#include "client/cubindctl/bundles/bundle_output.hpp"
#include "client/cubindctl/commands.hpp"
#include "client/cubindctl/kernels/known_specs.hpp"
#include "client/cubindctl/records/table_output.hpp"
#include "client/cubindctl/report/report_commands.hpp"
#include "schemas/limits.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind::ctl {
namespace {

/// Rows of the daemon's table that the bundle does not have.
struct LeftOut {
  std::uint32_t without_spec = 0, of_other_revision = 0, without_cubin = 0;
  std::uint32_t not_compiled = 0;  // although --compile asked for it
  std::string why;                 // the first of these was not
  std::string command;             // that measures it again
};

Table exported_table(const Connection& connection, const BundleCreateOptions& options,
                     const CommonOptions& common) {
  const v1::TableChunk table = connection.export_table(export_request(options.records), common.deadline());
  tell_what_is_left_out(table);
  return read_table(table.json(), "the daemon's table");
}

/// The question that the record answers by itself.
v1::GetVariantRequest request_for(const TableRecord& record, const std::string& device) {
  const TableContext& context = record.context;
  v1::GetVariantRequest request;
  request.set_kernel(context.kernel);
  to_wire(context.problem, *request.mutable_problem());
  request.mutable_device()->set_label(device);
  to_wire(parse_policy(context.policy).value_or(Policy()), *request.mutable_policy());
  to_wire(parse_numerics(record.numerics).value_or(Numerics()), *request.mutable_numerics());
  request.set_namespace_(record.name_space);
  request.set_restrict_accept(true);
  request.add_accept(v1::STALE);
  request.set_tune(v1::NEVER);
  return request;
}

class Collector {
 public:
  Collector(const Connection& connection, const BundleCreateOptions& options, const CommonOptions& common)
      : connection_(connection),
        common_(common),
        compiles_(options.compile),
        known_(known_specs(options.specs)) {}

  BundleContent collect(const Table& table) {
    for (const TableRecord& record : table.records) {
      add(record, *std::ranges::find(table.devices, record.context.device_class, &TableDevice::device_class));
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
  void add(const TableRecord& record, const TableDevice& device) {
    const auto spec = known_.specs.find(record.context.kernel);
    if (spec == known_.specs.end()) {
      ++left_out_.without_spec;
    } else if (!is_of_revision(record, *spec->second, device.facts)) {
      ++left_out_.of_other_revision;
    } else if (auto artifact = artifact_of(record, device)) {
      content_.table.records.push_back(record);
      content_.artifacts.push_back(std::move(*artifact));
      content_.kernels[spec->first] = spec->second;
    } else {
      ++(compiles_ ? left_out_.not_compiled : left_out_.without_cubin);
    }
  }

  std::optional<BundledArtifact> artifact_of(const TableRecord& record, const TableDevice& device) {
    auto artifact = stored_artifact(record.context.artifact);
    if (artifact || !compiles_) {
      return artifact;
    }
    std::string why = compile(record, device);
    artifact = stored_artifact(record.context.artifact);
    if (!artifact && left_out_.why.empty()) {
      const TableContext& context = record.context;
      left_out_.why = std::move(why);
      left_out_.command =
          tune_command({context.kernel, context.problem, context.policy, record.numerics, record.name_space},
                       device.label, true);
    }
    return artifact;
  }

  /// An answer needs the cubin, so the daemon's agents compile it. Returns why it is not the measured one.
  std::string compile(const TableRecord& record, const TableDevice& device) const {
    try {
      const v1::GetVariantReply reply =
          connection_.get_variant(request_for(record, device.label), common_.deadline());
      return "the source gives other bytes by " + reply.artifact().toolchain() + " than by " +
             record.context.toolchain.name + " when it was measured";
    } catch (const Error& error) {
      if (error.code() != ErrorCode::FailedPrecondition && error.code() != ErrorCode::NotFound) {
        throw;
      }
      return one_line(error.what());
    }
  }

  /// Absent: the daemon does not have the cubin.
  std::optional<BundledArtifact> stored_artifact(const Digest& cubin) {
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
                             {stored.info.entries().begin(), stored.info.entries().end()}};
    } catch (const Error& error) {
      if (error.code() != ErrorCode::NotFound) {
        throw;
      }
      return std::nullopt;
    }
  }

  void tell() const {
    const auto say = [](std::uint32_t rows, const char* which, const std::string& remedy) {
      if (rows > 0) {
        std::cerr << "left out " << counted(rows, "record") << " " << which << ": " << remedy << "\n";
      }
    };
    say(left_out_.without_spec, "of unknown kernels", "--kernels FOLDER names the folder of their specs");
    say(left_out_.of_other_revision, "of another revision of their kernel",
        "--kernels FOLDER names the folder of the spec that was measured");
    say(left_out_.without_cubin, "whose cubin the daemon does not have", "--compile compiles them");
    say(left_out_.not_compiled, "whose measured cubin could not be compiled again",
        left_out_.why + "; `" + left_out_.command + "` measures " +
            (left_out_.not_compiled == 1 ? "it" : "the first of them") + " with what is there today");
  }

  const Connection& connection_;
  const CommonOptions& common_;
  const bool compiles_;
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
