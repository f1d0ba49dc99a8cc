#include "tests/support/malformed.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "tests/support/refusal_of.hpp"
#include "tuner/spec/kernel_spec.hpp"

namespace cubind::test {

TEST_CASE("every malformed spec is refused at its place with its cause") {
  const TempDir folder;
  const std::vector<MalformedFile> files = write_malformed("specs", folder.path());
  REQUIRE(files.size() >= 15);
  for (const MalformedFile& file : files) {
    INFO(file.path);
    const Error refusal = refused([&] { load_kernel_spec(file.path); }).value();
    CHECK(refusal.where() == (file.where.empty() ? file.path : file.path + " " + file.where));
    CHECK_THAT(refusal.cause(), Catch::Contains(file.cause));
  }
  CHECK_NOTHROW(load_kernel_spec((folder.path() / "valid.json").string()));
}

}  // namespace cubind::test
