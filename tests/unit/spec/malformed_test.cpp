#include "tests/support/malformed.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "tuner/spec/kernel_spec.hpp"

namespace cubind::test {

namespace {

struct Refusal {
  std::string where;
  std::string cause;
};

Refusal refusal_of(const std::string& path) {
  try {
    load_kernel_spec(path);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::InvalidArgument);
    return {error.where(), error.cause()};
  }
  return {};
}

}  // namespace

TEST_CASE("every malformed spec is refused at its place with its cause") {
  const TempDir folder;
  const std::vector<MalformedFile> files = write_malformed("specs", folder.path());
  REQUIRE(files.size() >= 15);
  for (const MalformedFile& file : files) {
    const Refusal refusal = refusal_of(file.path);
    INFO(file.path << "\n  " << refusal.where << ": " << refusal.cause);
    CHECK(refusal.where == (file.where.empty() ? file.path : file.path + " " + file.where));
    CHECK_THAT(refusal.cause, Catch::Contains(file.cause));
  }
  CHECK(refusal_of((folder.path() / "valid.json").string()).cause.empty());
}

}  // namespace cubind::test
