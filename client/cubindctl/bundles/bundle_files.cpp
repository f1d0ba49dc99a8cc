// cubindctl bundle verify and show: bundles as files, without a daemon.
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "bundle/bundle.hpp"
#include "client/cubindctl/bundles/bundle_output.hpp"
#include "client/cubindctl/commands.hpp"
#include "client/cubindctl/terminal/terminal.hpp"
#include "client/cubindctl/terminal/text_table.hpp"

namespace cubind::ctl {
namespace {

std::string bundle_bytes(const std::string& file) { return read_file(file, kMaxBundleBytes); }

void print_records(const Bundle& bundle) {
  TextTable table({"NAMESPACE", "KERNEL", "PROBLEM", "CONFIGURATION", "EVIDENCE", "CUBIN"});
  for (const SignedLine& record : bundle.manifest.records) {
    const Fingerprint print = parse_fingerprint(record.line, "fingerprint");
    table.add({print.name_space.empty() ? "-" : print.name_space, print.kernel, print.problem,
               print.configuration, print.evidence, print.cubin.hex().substr(0, 12)});
  }
  table.print(std::cout, output_columns());
}

}  // namespace

ExitCode run(const BundleVerifyOptions& options, const CommonOptions& common) {
  const Trust trust = read_trust_file(options.trust);
  const auto now = std::chrono::system_clock::now();
  const Bundle bundle = verify_bundle(bundle_bytes(options.file), options.file, trust, now);
  const TrustedKey& key = trust.key_of(bundle.signer, now, options.file);
  print_bundle_summary(bundle, options.file, key.name + " (" + bundle.signer.text() + ")", common);
  return ExitCode::Ok;
}

ExitCode run(const BundleShowOptions& options, const CommonOptions& common) {
  const Bundle bundle = read_bundle(bundle_bytes(options.file), options.file);
  print_bundle_summary(bundle, options.file, bundle.signer.text() + " (not verified)", common);
  if (!common.json) {
    print_records(bundle);
  }
  return ExitCode::Ok;
}

}  // namespace cubind::ctl
