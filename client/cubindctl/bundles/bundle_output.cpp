#include "client/cubindctl/bundles/bundle_output.hpp"

#include <iostream>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/text.hpp"
#include "client/cubindctl/terminal/text_table.hpp"

namespace cubind::ctl {
namespace {

std::uint64_t cubin_bytes(const BundleContent& content) {
  std::uint64_t bytes = 0;
  for (const auto& [digest, cubin] : content.cubins) {
    bytes += cubin.size();
  }
  return bytes;
}

}  // namespace

std::string bundle_text(const Bundle& bundle, const std::string& signer) {
  const BundleContent& content = bundle.content;
  return bundle.manifest.issuer + " " + std::to_string(bundle.manifest.serial) + " until " +
         day_text(bundle.manifest.expires) + ", signed by " + signer + ": " +
         counted(content.table.records.size(), "record") + " of " +
         counted(content.kernels.size(), "kernel") + ", " + counted(content.cubins.size(), "cubin") + " (" +
         size_text(cubin_bytes(content)) + ")";
}

OutputJson bundle_json(const Bundle& bundle, const std::string& file) {
  OutputJson records = OutputJson::array();
  for (const SignedLine& record : bundle.manifest.records) {
    records.push_back(record.line);
  }
  return {{"file", file},
          {"issuer", bundle.manifest.issuer},
          {"serial", bundle.manifest.serial},
          {"expires", iso8601_utc(bundle.manifest.expires)},
          {"key", bundle.signer.text()},
          {"kernels", bundle.content.kernels.size()},
          {"cubins", bundle.content.cubins.size()},
          {"cubin_bytes", cubin_bytes(bundle.content)},
          {"fingerprints", std::move(records)}};
}

void print_bundle_summary(const Bundle& bundle, const std::string& file, const std::string& signer,
                          const CommonOptions& common) {
  if (common.json) {
    print_json(bundle_json(bundle, file));
  } else {
    std::cout << file << ": " << bundle_text(bundle, signer) << "\n";
  }
}

}  // namespace cubind::ctl
