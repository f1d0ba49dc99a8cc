// A bundle on its way through skopeo, which registries are filled with.
#include <catch2/catch.hpp>
#include <filesystem>

#include "base/file.hpp"
#include "base/subprocess.hpp"
#include "bundle/bundle.hpp"
#include "tests/support/signing_keys.hpp"
#include "tests/support/skip.hpp"
#include "tests/unit/bundle/example_bundle.hpp"

namespace cubind {
namespace {

constexpr const char* kSkopeo = "/usr/bin/skopeo";

bool copied(const TempDir& folder, const std::string& from, const std::string& to) {
  SubprocessOptions options;
  options.program = kSkopeo;
  options.arguments = {"--insecure-policy", "copy", from, to};
  options.environment = {"PATH=/usr/bin:/bin", "HOME=" + folder.path().string(),
                         "XDG_RUNTIME_DIR=" + folder.path().string()};
  return Subprocess::spawn(options).wait().success();
}

}  // namespace

TEST_CASE("a bundle that skopeo copied to a layout and back is verified") {
  if (!std::filesystem::exists(kSkopeo)) {
    return test::skip_test("skopeo is not installed");
  }
  const TempDir folder;
  const std::string path = folder.path().string() + "/";
  write_file_atomic(path + "acme.bundle", test::example_bundle());
  REQUIRE(copied(folder, "oci-archive:" + path + "acme.bundle", "oci:" + path + "layout:7"));
  REQUIRE(copied(folder, "oci:" + path + "layout:7", "oci-archive:" + path + "back.bundle"));
  const Bundle back = verify_bundle(read_file(path + "back.bundle"), "back",
                                    parse_trust(test::trust_line(), "trust"), test::example_now());
  CHECK(back.manifest == read_bundle(test::example_bundle(), "F").manifest);
}

}  // namespace cubind
