#include "tests/unit/bundle/example_bundle.hpp"
#include "tests/support/facts.hpp"

#include "base/clock.hpp"
#include "base/file.hpp"
#include "bundle/oci_image.hpp"
#include "tests/support/example_facts.hpp"
#include "tests/support/signing_keys.hpp"
#include "tests/support/tiny_kernel.hpp"
#include "tuner/spec/todays_terms.hpp"

namespace cubind::test {
namespace {

std::shared_ptr<const KernelSpec> tiny_spec() {
  const TempDir folder;
  write_tiny_kernel(folder.path());
  return load_kernel_spec((folder.path() / "scale.json").string());
}

TableRecord record_of(const KernelSpec& spec, const DeviceClass& device, std::int64_t factor,
                      const std::string& name_space) {
  TableRecord record;
  TableContext& context = record.context;
  context.kernel = spec.name;
  context.problem = tiny_problem(factor);
  context.device_class = device.digest;
  context.policy = "cold/3,stream";
  context.configuration = tiny_configurations().front();
  context.driver = "580.159.04";
  context.architecture = "sm_90";
  context.artifact = Digest::of("cubin of K=" + std::to_string(factor));
  context.toolchain = {"nvrtc 13.0", Digest::of("nvrtc"), Digest::of("builtins"), Digest::of("headers")};
  context.trial = *trial_key_under(spec, context.configuration,
                                   {context.problem, device.digest, device_constants(device.facts), Policy{},
                                    context.driver, context.architecture, context.toolchain});
  record.interface = interface_digest(spec);
  record.numerics = "tolerance";
  record.name_space = name_space;
  record.driver_cuda = 13000;
  record.timing = timing_of(2.5, 2.5, 2.5, 5, "2026-01-02T03:04:05Z");
  record.verification = verified(verification_digest(spec), "default", std::vector{context.problem});
  return record;
}

}  // namespace

BundleContent example_content(const std::string& name_space) {
  BundleContent content;
  const auto spec = tiny_spec();
  const DeviceClass device = derive_device_class(example_facts(), "facts");
  content.table.devices.push_back({device.digest, device.label, device.facts});
  for (const std::int64_t factor : {2, 3}) {
    content.table.records.push_back(record_of(*spec, device, factor, name_space));
    const std::string cubin = "cubin of K=" + std::to_string(factor);
    content.cubins[Digest::of(cubin)] = cubin;
    const std::string symbol = "_Z5scaleK" + std::to_string(factor);
    content.artifacts.push_back({{symbol}, {resources_of(symbol, 16)}});
  }
  sort_table(content.table);
  content.kernels[spec->name] = spec;
  return content;
}

BundleTerms example_terms() { return {"acme", 7, *parse_iso8601_utc("2027-03-01T00:00:00Z")}; }

std::string example_bundle() { return print_bundle(example_content(), example_terms(), signing_key()); }

std::chrono::system_clock::time_point example_now() { return *parse_iso8601_utc("2026-12-01T00:00:00Z"); }

BundleLayers layers_of(const std::string& bundle) {
  const auto layers = read_oci_image(bundle, "F");
  return {layers.at(0).bytes, layers.at(1).bytes, read_tar(layers.at(2).bytes, "F")};
}

std::string bundle_of(const BundleLayers& layers) {
  return print_oci_image({{"application/vnd.cubind.bundle.manifest.v1+json", layers.manifest},
                          {"application/vnd.cubind.bundle.signature.v1", layers.signature},
                          {"application/vnd.cubind.bundle.content.v1.tar", write_tar(layers.files)}});
}

std::string signed_again(BundleLayers layers, BundleManifest manifest) {
  manifest.files = listed(layers.files);
  layers.manifest = print_manifest(manifest);
  layers.signature = print_signature_file(signing_key(), layers.manifest, "again");
  return bundle_of(layers);
}

}  // namespace cubind::test
