#include <catch2/catch.hpp>
#include <fstream>
#include <set>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/json.hpp"
#include "tests/support/paths.hpp"
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
  const auto folder = test::source_dir() / "tests/golden/malformed";
  const Json cases = Json::parse(read_file(folder / "specs.json"));
  REQUIRE(cases.size() >= 15);
  for (const Json& expected : cases) {
    const std::string path = (folder / "specs" / expected.at("file").get<std::string>()).string();
    const std::string pointer = expected.at("where").get<std::string>();
    const Refusal refusal = refusal_of(path);
    INFO(path << "\n  " << refusal.where << ": " << refusal.cause);
    CHECK(refusal.where == (pointer.empty() ? path : path + " " + pointer));
    CHECK_THAT(refusal.cause, Catch::Contains(expected.at("cause").get<std::string>()));
  }
}

TEST_CASE("every malformed spec on disk is in the manifest") {
  const auto folder = test::source_dir() / "tests/golden/malformed";
  std::set<std::string> listed;
  for (const Json& expected : Json::parse(read_file(folder / "specs.json"))) {
    listed.insert(expected.at("file"));
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder / "specs")) {
    if (entry.path().extension() == ".json") {
      CHECK(listed.contains(entry.path().filename().string()));
    }
  }
}

}  // namespace cubind::test
