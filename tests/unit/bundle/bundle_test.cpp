#include "bundle/bundle.hpp"

#include <catch2/catch.hpp>

#include "base/file.hpp"
#include "bundle/oci_image.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/signing_keys.hpp"
#include "tests/unit/bundle/example_bundle.hpp"

namespace cubind {
namespace {

Trust acme() { return parse_trust(test::trust_line(), "trust"); }

}  // namespace

TEST_CASE("a bundle is verified and holds what it was made of") {
  const Bundle bundle = verify_bundle(test::example_bundle(), "F", acme(), test::example_now());
  const BundleContent content = test::example_content();
  CHECK(bundle.manifest.issuer == "acme");
  CHECK(bundle.manifest.serial == 7);
  CHECK(bundle.signer.text() == "1FD02E9933C7BA93");
  CHECK(bundle.content.table == content.table);
  CHECK(bundle.content.artifacts == content.artifacts);
  CHECK(bundle.content.cubins == content.cubins);
  CHECK(bundle.content.kernels.at("scale")->source_digests == content.kernels.at("scale")->source_digests);
}

TEST_CASE("a bundle of the first version is verified and holds the records of its table") {
  const auto folder = test::source_dir() / "tests/golden/formats";
  const Bundle bundle =
      verify_bundle(read_file(folder / "acme.bundle"), "acme.bundle", acme(), test::example_now());
  CHECK(bundle.content.table.records == read_table(read_file(folder / "table.json"), "table.json").records);
  CHECK(bundle.content.cubins.size() == 2);
}

TEST_CASE("the same content and terms give the same bytes") {
  CHECK(test::example_bundle() == test::example_bundle());
}

TEST_CASE("a bundle of an unknown key is read without being trusted") {
  const std::string bytes =
      print_bundle(test::example_content(), test::example_terms(), test::other_signing_key());
  CHECK(read_bundle(bytes, "F").signer.text() == "CD2FD7FDD14E9A57");
}

TEST_CASE("each record has a fingerprint of its own question and cubin") {
  const Bundle bundle = read_bundle(test::example_bundle(), "F");
  REQUIRE(bundle.manifest.records.size() == 2);
  const Fingerprint first = parse_fingerprint(bundle.manifest.records[0].line, "F");
  const Fingerprint second = parse_fingerprint(bundle.manifest.records[1].line, "F");
  CHECK(first.kernel == "scale");
  CHECK(first.name_space == "team");
  CHECK(first.problem == "N=4096,K=2,T=f32");
  CHECK(first.bucket == "N=2049..4096,K=2..2");
  CHECK(first.cubin == Digest::of("cubin of K=2"));
  CHECK(first.artifact != second.artifact);
  CHECK(first.launches != second.launches);
  CHECK(first.serial == 7);
}

TEST_CASE("a bundle is an image of three layers for other tools") {
  const auto layers = read_oci_image(test::example_bundle(), "F");
  REQUIRE(layers.size() == 3);
  CHECK(layers[1].bytes.starts_with("untrusted comment: "));
  CHECK(print_oci_image(layers) == test::example_bundle());
}

TEST_CASE("a record of another revision of its kernel makes no bundle") {
  BundleContent content = test::example_content();
  content.table.records[1].context.trial = Digest::of("another trial");
  CHECK_THROWS_WITH(print_bundle(content, test::example_terms(), test::signing_key()),
                    "bundle /records/1: was measured with another revision of scale than the bundle has");
}

}  // namespace cubind
