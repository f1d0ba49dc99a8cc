// cubindctl bundle: what a daemon has measured, as a signed file.
#include <catch2/catch.hpp>

#include "base/text.hpp"
#include "tests/service/bundle/bundle_maker.hpp"

namespace cubind::test {
namespace {

using Catch::Contains;
namespace fs = std::filesystem;

}  // namespace

TEST_CASE("a bundle of a daemon's records is created and verified") {
  BundleMaker maker;
  const ProgramResult made = maker.create("acme.bundle");
  INFO(made.err);
  REQUIRE(made.exit_code == 0);
  CHECK_THAT(made.out,
             Contains("acme 7 until 2098-12-31, signed by 1FD02E9933C7BA93: 2 records of 1 kernel, 2 "
                      "cubins"));
  CHECK(made.err.empty());
  const ProgramResult verified = maker.verify("acme.bundle");
  INFO(verified.err);
  CHECK(verified.exit_code == 0);
  CHECK_THAT(verified.out, Contains("signed by acme (1FD02E9933C7BA93)"));
}

TEST_CASE("the same records give the same bundle") {
  BundleMaker maker;
  REQUIRE(maker.create("a").exit_code == 0);
  REQUIRE(maker.create("b").exit_code == 0);
  CHECK(read_file(maker.path("a")) == read_file(maker.path("b")));
}

TEST_CASE("a bundle is shown with its fingerprints") {
  BundleMaker maker;
  REQUIRE(maker.create("acme.bundle").exit_code == 0);
  const std::string file = maker.path("acme.bundle").string();
  const ProgramResult shown = ctl("unix:///nowhere", {"bundle", "show", file});
  CHECK_THAT(shown.out, Contains("(not verified)") && Contains("N=4096,K=2,T=f32"));
  const Json json = Json::parse(ctl("unix:///nowhere", {"bundle", "show", file, "--json"}).out);
  CHECK(json.at("serial") == 7);
  CHECK(json.at("fingerprints").size() == 2);
}

TEST_CASE("records whose spec is unknown or another revision are left out aloud") {
  BundleMaker maker;
  std::vector<std::string> arguments = maker.arguments("acme.bundle", 7);
  arguments.resize(arguments.size() - 2);
  const ProgramResult unknown = ctl(maker.daemon(), arguments);
  CHECK(unknown.exit_code == 7);
  CHECK_THAT(unknown.err, Contains("left out 2 records of unknown kernels: --kernels FOLDER") &&
                              Contains("the daemon has no record for it"));
  const TempDir other;
  write_tiny_kernel(other.path(), "another revision");
  arguments.insert(arguments.end(), {"--kernels", other.path().string()});
  CHECK_THAT(ctl(maker.daemon(), arguments).err, Contains("left out 2 records of another revision"));
  CHECK_FALSE(fs::exists(maker.path("acme.bundle")));
}

/// A daemon that knows the records of another by a table, without their cubins.
struct Importing {
  explicit Importing(const std::function<void(TableRecord&)>& edit) {
    Table table = maker.daemon().as_of_a_real_gpu();
    for (TableRecord& record : table.records) {
      edit(record);
    }
    daemon->connect().import_table(print_table(table), "mine.json", "", kPatience);
  }
  ProgramResult create(const std::vector<std::string>& further) {
    std::vector<std::string> arguments = maker.arguments("acme.bundle", 7);
    arguments.insert(arguments.end(), further.begin(), further.end());
    return ctl(daemon, arguments);
  }

  BundleMaker maker;
  TinyDaemon daemon{{.problems = {tiny_problem(2), tiny_problem(3)}}};
};

TEST_CASE("cubins that the daemon lacks are compiled if one asks for it") {
  Importing importing([](TableRecord&) {});
  const ProgramResult without = importing.create({});
  CHECK(without.exit_code == 7);
  CHECK_THAT(without.err,
             Contains("left out 2 records whose cubin the daemon does not have: --compile compiles them"));
  const ProgramResult made = importing.create({"--compile"});
  INFO(made.err);
  REQUIRE(made.exit_code == 0);
  CHECK_THAT(made.out, Contains(": 2 records of 1 kernel, 2 cubins"));
  CHECK(importing.maker.verify("acme.bundle").exit_code == 0);
}

TEST_CASE(
    "a cubin that is compiled to other bytes today is left out with the command that measures it again") {
  Importing importing([](TableRecord& record) {
    record.context.artifact = Digest::of("of another compiler");
    record.context.toolchain.name = "nvrtc 9.9";
  });
  const ProgramResult made = importing.create({"--compile"});
  CHECK(made.exit_code == 7);
  CHECK_THAT(made.err,
             Contains("left out 2 records whose measured cubin could not be compiled again: the source gives "
                      "other bytes by nvrtc 1") &&
                 Contains(" than by nvrtc 9.9 when it was measured; `cubindctl tune scale --problem " +
                          text_of(tiny_problem(2)) + " --device nvidia-h200 --retune` measures the first"));
}

TEST_CASE("a bundle leaves out what came with cubind unless it is asked for") {
  Importing importing([](TableRecord& record) { record.evidence = Evidence::Shipped; });
  const ProgramResult own = importing.create({"--compile"});
  CHECK(own.exit_code == 7);
  CHECK_THAT(own.err, Contains("left out 2 records that came with cubind: --shipped includes them"));
  CHECK(importing.create({"--compile", "--shipped"}).exit_code == 0);
}

TEST_CASE("a bundle that has expired already is not made") {
  BundleMaker maker;
  std::vector<std::string> arguments = maker.arguments("acme.bundle", 7);
  std::ranges::replace(arguments, std::string("2098-12-31"), std::string("2020-01-01"));
  const ProgramResult made = ctl(maker.daemon(), arguments);
  CHECK(made.exit_code == 2);
  CHECK_THAT(made.err, Contains("--expires 2020-01-01: has passed"));
}

TEST_CASE("a tampered bundle is not verified") {
  BundleMaker maker;
  REQUIRE(maker.create("acme.bundle").exit_code == 0);
  const std::string bytes = read_file(maker.path("acme.bundle"));
  write_file_atomic(maker.path("acme.bundle"), replaced(bytes, "\"serial\": 7", "\"serial\": 9"));
  const ProgramResult verified = maker.verify("acme.bundle");
  CHECK(verified.exit_code != 0);
  CHECK_THAT(verified.err, Contains("is damaged: it does not have the digest of its name"));
}

}  // namespace cubind::test
