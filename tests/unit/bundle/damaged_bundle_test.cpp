// The catalogue of bundles that are refused, each with its reason.
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "base/text.hpp"
#include "bundle/archive.hpp"
#include "bundle/bundle.hpp"
#include "bundle/oci_image.hpp"
#include "tests/support/refusal_of.hpp"
#include "tests/support/signing_keys.hpp"
#include "tests/unit/bundle/example_bundle.hpp"

namespace cubind {
namespace {

using test::BundleLayers;

std::string fault_of(const std::string& bytes, const std::string& trust = test::trust_line(),
                     std::chrono::system_clock::time_point now = test::example_now()) {
  return test::message_of([&] { verify_bundle(bytes, "F", parse_trust(trust, "trust"), now); });
}

std::string changed(const std::function<void(BundleLayers&)>& change) {
  BundleLayers layers = test::layers_of(test::example_bundle());
  change(layers);
  return test::bundle_of(layers);
}

std::string changed_and_signed(const std::function<void(BundleLayers&, BundleManifest&)>& change) {
  BundleLayers layers = test::layers_of(test::example_bundle());
  BundleManifest manifest = parse_manifest(layers.manifest, "F");
  change(layers, manifest);
  return test::signed_again(layers, manifest);
}

/// The archive with other bytes behind each member, up to the end of its block.
std::string with_filled_blocks(std::string archive) {
  constexpr std::size_t kBlock = 512, kSize = 124;
  for (std::size_t at = 0; archive[at] != '\0';) {
    const std::size_t end = at + kBlock + std::stoul(archive.substr(at + kSize), nullptr, 8);
    at = (end + kBlock - 1) / kBlock * kBlock;
    std::fill(archive.begin() + static_cast<std::ptrdiff_t>(end),
              archive.begin() + static_cast<std::ptrdiff_t>(at), 'x');
  }
  return archive;
}

std::string cubin_path(const std::string& cubin) { return "cubins/" + Digest::of(cubin).hex(); }

}  // namespace

TEST_CASE("the bundle of the catalogue is sound as long as nothing is changed") {
  CHECK(fault_of(test::example_bundle()).empty());
  CHECK(fault_of(changed([](BundleLayers&) {})).empty());
  CHECK(fault_of(changed_and_signed([](BundleLayers&, BundleManifest&) {})).empty());
}

TEST_CASE("a bundle that was cut off is refused") {
  const std::string bytes = test::example_bundle();
  for (std::size_t size = 0; size < bytes.size(); size += 509) {
    CHECK_THAT(fault_of(bytes.substr(0, size)), Catch::StartsWith("F"));
  }
  CHECK_THAT(fault_of(bytes.substr(0, 1000)), Catch::Contains("is not a whole tar archive: it was cut off"));
}

TEST_CASE("no flipped bit of a bundle changes what is accepted") {
  const std::string bytes = test::example_bundle();
  const Bundle sound = read_bundle(bytes, "F");
  for (std::size_t at = 0; at < bytes.size(); at += 97) {
    std::string flipped = bytes;
    flipped[at] = static_cast<char>(flipped[at] ^ 4);
    try {
      const Bundle read =
          verify_bundle(flipped, "F", parse_trust(test::trust_line(), "trust"), test::example_now());
      CHECK(read.manifest == sound.manifest);  // a bit of tar's own dates, modes or padding
      CHECK(read.content.cubins == sound.content.cubins);
    } catch (const Error&) {
    }
  }
}

TEST_CASE("what the signature does not cover may change and changes nothing of the content") {
  const std::string example = test::example_bundle();
  const Bundle sound = read_bundle(example, "F");
  Members members = read_tar(example, "F");
  members["more"] = "text";
  members["index.json"] =
      replaced(members["index.json"], "{\"schemaVersion\":", "{\"annotations\":{},\"schemaVersion\":");
  const std::string commented = changed([](BundleLayers& layers) {
    layers.signature = replaced(layers.signature, "untrusted comment: ", "untrusted comment: another ");
  });
  for (const std::string& bytes : {with_filled_blocks(example), write_tar(members), commented}) {
    REQUIRE(bytes != example);
    const Bundle read =
        verify_bundle(bytes, "F", parse_trust(test::trust_line(), "trust"), test::example_now());
    CHECK(read.manifest == sound.manifest);
    CHECK(read.content.cubins == sound.content.cubins);
  }
}

TEST_CASE("a file that is no bundle is refused") {
  CHECK_THAT(fault_of("PK\x03\x04"), Catch::StartsWith("F: is not a whole tar archive"));
  CHECK_THAT(fault_of(write_tar({{"README", "hello"}})),
             Catch::StartsWith("F: is not a bundle: it is a tar archive without index.json"));
  CHECK_THAT(fault_of(print_oci_image({{"application/vnd.oci.image.layer.v1.tar", "layer"}})),
             Catch::StartsWith("F: is an OCI image and not a bundle"));
}

TEST_CASE("a changed manifest is refused") {
  CHECK_THAT(fault_of(changed([](BundleLayers& layers) {
               layers.manifest = replaced(layers.manifest, "\"serial\": 7", "\"serial\": 8");
             })),
             Catch::StartsWith("F: the signature of its manifest is not acme's: the bundle was changed"));
}

TEST_CASE("a changed signature is refused") {
  CHECK_THAT(fault_of(changed([](BundleLayers& layers) {
               layers.signature = print_signature_file(test::signing_key(), "another text", "acme 7");
             })),
             Catch::StartsWith("F: the signature of its manifest is not acme's"));
  CHECK_THAT(fault_of(changed([](BundleLayers& layers) { layers.signature = "none"; })),
             Catch::StartsWith("F signature: is not a signature file of minisign"));
}

TEST_CASE("a tampered cubin is refused") {
  const std::string path = cubin_path("cubin of K=2");
  CHECK_THAT(fault_of(changed([&](BundleLayers& layers) { layers.files[path] = "cubin of K=4"; })),
             Catch::StartsWith("F " + path + ": is not the file that was signed"));
  CHECK_THAT(fault_of(changed_and_signed(
                 [&](BundleLayers& layers, BundleManifest&) { layers.files[path] = "cubin of K=4"; })),
             Catch::StartsWith("F " + path + ": is damaged"));
}

TEST_CASE("a cubin of another question is refused") {
  CHECK_THAT(fault_of(changed([](BundleLayers& layers) {
               std::swap(layers.files[cubin_path("cubin of K=2")], layers.files[cubin_path("cubin of K=3")]);
             })),
             Catch::Contains("is not the file that was signed"));
  // The issuer's own table with the other cubin: the fingerprints still bind each question to its own.
  CHECK_THAT(fault_of(changed_and_signed([](BundleLayers& layers, BundleManifest&) {
               std::string& table = layers.files["table.json"];
               const std::string two = Digest::of("cubin of K=2").hex(),
                                 three = Digest::of("cubin of K=3").hex();
               table = replaced(replaced(replaced(table, two, "X"), three, two), "X", three);
             })),
             Catch::StartsWith("F manifest /records/0/fingerprint: is not that of the record"));
}

TEST_CASE("swapped fingerprints are refused") {
  CHECK_THAT(fault_of(changed_and_signed([](BundleLayers&, BundleManifest& manifest) {
               std::swap(manifest.records[0], manifest.records[1]);
             })),
             Catch::StartsWith("F manifest /records/0/fingerprint: is not that of the record"));
}

TEST_CASE("a fingerprint of another signer is refused") {
  CHECK_THAT(fault_of(changed_and_signed([](BundleLayers&, BundleManifest& manifest) {
               manifest.records[1].signature = test::other_signing_key().sign(manifest.records[1].line);
             })),
             Catch::StartsWith("F manifest /records/1: its fingerprint does not have a signature of acme"));
}

TEST_CASE("a changed table is refused") {
  CHECK_THAT(fault_of(changed([](BundleLayers& layers) { layers.files["table.json"] += " "; })),
             Catch::StartsWith("F table.json: is not the file that was signed"));
}

TEST_CASE("a changed source is refused") {
  CHECK_THAT(fault_of(changed_and_signed([](BundleLayers& layers, BundleManifest&) {
               layers.files["kernels/scale/spec/scale.cu"] += "// changed";
             })),
             Catch::StartsWith("F /records/0: was measured with another revision of scale"));
}

TEST_CASE("missing and additional files are refused") {
  CHECK_THAT(fault_of(changed([](BundleLayers& layers) { layers.files.erase("table.json"); })),
             Catch::StartsWith("F: lacks the file \"table.json\""));
  CHECK_THAT(fault_of(changed([](BundleLayers& layers) { layers.files["more"] = "text"; })),
             Catch::StartsWith("F: holds files that its manifest does not list"));
  CHECK_THAT(fault_of(changed_and_signed(
                 [](BundleLayers& layers, BundleManifest&) { layers.files["more"] = "text"; })),
             Catch::StartsWith("F more: belongs to no record"));
}

TEST_CASE("a manifest that lists a file twice is refused") {
  BundleLayers layers = test::layers_of(test::example_bundle());
  BundleManifest manifest = parse_manifest(layers.manifest, "F");
  manifest.files.push_back(manifest.files.back());
  layers.manifest = print_manifest(manifest);
  layers.signature = print_signature_file(test::signing_key(), layers.manifest, "again");
  CHECK_THAT(fault_of(test::bundle_of(layers)), Catch::Contains("or lists twice"));
}

TEST_CASE("an unknown key is refused") {
  const std::string bytes =
      print_bundle(test::example_content(), test::example_terms(), test::other_signing_key());
  CHECK_THAT(fault_of(bytes),
             Catch::StartsWith("F: is signed by the key CD2FD7FDD14E9A57, which trust does not"));
}

TEST_CASE("an expired key is refused") {
  CHECK_THAT(
      fault_of(test::example_bundle(), test::trust_line("2026-11-30")),
      Catch::StartsWith("F: is signed by the key 1FD02E9933C7BA93 of acme, which has expired in trust"));
}

TEST_CASE("an expired bundle is refused") {
  CHECK_THAT(fault_of(test::example_bundle(), test::trust_line(), test::example_terms().expires),
             Catch::StartsWith("F: has expired on 2027-03-01: get a newer one from acme"));
}

TEST_CASE("a namespace that the key may not sign for is refused") {
  CHECK_THAT(fault_of(test::example_bundle(), test::trust_line("2099-01-01", "other,-")),
             Catch::StartsWith("F manifest /records/0: the key 1FD02E9933C7BA93 of acme may not sign for the "
                               "namespace \"team\""));
}

TEST_CASE("a manifest with a fault is refused at its place") {
  const auto with = [](std::string_view from, std::string_view to) {
    BundleLayers layers = test::layers_of(test::example_bundle());
    layers.manifest = replaced(layers.manifest, from, to);
    layers.signature = print_signature_file(test::signing_key(), layers.manifest, "again");
    return fault_of(test::bundle_of(layers));
  };
  CHECK_THAT(with("cubind-bundle/1", "cubind-bundle/2"), Catch::StartsWith("F manifest /format: "));
  CHECK_THAT(with("\"acme\"", "\"../acme\""), Catch::StartsWith("F manifest /issuer: "));
  CHECK_THAT(with("\"serial\": 7", "\"serial\": 0"), Catch::StartsWith("F manifest /serial: "));
  CHECK_THAT(with("2027-03-01", "2027-13-01"), Catch::StartsWith("F manifest /expires: "));
  CHECK_THAT(with("\"signature\": \"RUS", "\"signature\": \"RWS"),
             Catch::StartsWith("F manifest /records/0/signature: "));
}

}  // namespace cubind
