// A daemon that serves a bundle, read-only.
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "base/text.hpp"
#include "bundle/bundle.hpp"
#include "client/client.hpp"
#include "plan/answer_wire.hpp"
#include "tests/service/bundle/bundle_maker.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/refusal_of.hpp"

namespace cubind::test {
namespace {

using Catch::Contains;

/// Of a bundle in a folder of its own.
class Server {
 public:
  explicit Server(const BundleMaker& maker, const std::string& bundle = "acme.bundle")
      : daemon_({.folder = folder_.path(), .bundle = maker.path(bundle), .trust = maker.path("trust")}) {}

  Daemon& operator*() { return daemon_; }
  Daemon* operator->() { return &daemon_; }
  /// What the log says of a start that is refused.
  std::string refusal() {
    const ExitStatus status = daemon_.run_to_end(kPatience);
    CHECK(status.code == 1);
    return daemon_.log();
  }

 private:
  TempDir folder_;
  Daemon daemon_;
};

v1::GetVariantRequest question_on(const std::string& label, const Problem& problem) {
  v1::GetVariantRequest request;
  request.set_kernel(kTinyKernel);
  *request.mutable_problem() = wire(problem);
  request.mutable_device()->set_label(label);
  request.set_with_plan(true);
  return request;
}

}  // namespace

TEST_CASE("a bundle is served with the cubins that were measured and their signed fingerprints") {
  BundleMaker maker;
  REQUIRE(maker.create("acme.bundle").exit_code == 0);
  const std::string label = offered_device(maker.daemon()->connect()).label();
  const auto asked = question_on(label, tiny_problem(3));
  const v1::GetVariantReply measured = maker.daemon()->connect().get_variant(asked, kPatience);
  Server server(maker);
  server->start();
  const v1::GetVariantReply served = server->connect().get_variant(asked, kPatience);
  CHECK(served.artifact().digest() == measured.artifact().digest());
  CHECK(served.artifact().zstd_cubin() == measured.artifact().zstd_cubin());
  CHECK(served.provenance().evidence() == measured.provenance().evidence());
  CHECK(served.provenance().departures_size() == 0);
  CHECK(served.plan().SerializeAsString() == measured.plan().SerializeAsString());
  const Fingerprint print = parse_fingerprint(served.fingerprint(), "reply");
  CHECK(print.problem == to_string(tiny_problem(3)));
  CHECK(bytes_of(print.cubin) == served.artifact().digest());
  CHECK(bytes_of(print.artifact) == served.artifact().key());
  const auto signature = Signature::unpack(served.signature());
  REQUIRE(signature);
  CHECK(signing_key().public_key().has_signed(served.fingerprint(), *signature));
  CHECK(measured.fingerprint().empty());
}

TEST_CASE("a bundle of the first version is served") {
  const TempDir folder;
  write_file_atomic(folder.path() / "trust", trust_line());
  Daemon daemon({.folder = folder.path(),
                 .bundle = source_dir() / "tests/golden/formats/acme.bundle",
                 .trust = folder.path() / "trust"});
  daemon.start();
  const v1::GetVariantReply served =
      daemon.connect().get_variant(question_on("replay-344f2e99", tiny_problem(2)), kPatience);
  CHECK(served.provenance().departures_size() == 0);
  CHECK(served.artifact().cubin_bytes() == 4224);
}

TEST_CASE("a daemon of a bundle refuses each change and starts nothing") {
  BundleMaker maker;
  REQUIRE(maker.create("acme.bundle").exit_code == 0);
  const std::string label = offered_device(maker.daemon()->connect()).label();
  Server server(maker);
  server->start();
  CHECK_THAT(message_of([&] { tune(server->connect(), {tiny_problem(2)}); }),
             Contains("this daemon serves a signed bundle, which nothing changes"));
  CHECK_THAT(message_of([&] { server->connect().import_table("{}", "t.json", "", kPatience); }),
             Contains("this daemon serves a signed bundle"));
  const std::string missed =
      message_of([&] { server->connect().get_variant(question_on(label, tiny_problem(5)), kPatience); });
  CHECK_THAT(missed, Contains("the daemon serves a signed bundle, for which nothing is compiled or tuned"));
  CHECK(server->connect().list_jobs(true, kPatience).jobs_size() == 0);
}

TEST_CASE("a client with a trust file takes signed answers alone") {
  BundleMaker maker;
  REQUIRE(maker.create("acme.bundle").exit_code == 0);
  ::setenv("XDG_DATA_HOME", maker.path("data").c_str(), 1);  // of the serials
  Query query{.kernel = kTinyKernel, .problem = tiny_problem(3)};
  query.device = DeviceLabel{offered_device(maker.daemon()->connect()).label()};
  Server server(maker);
  server->start();
  const std::string trust = maker.path("trust").string();
  CHECK(Client({.address = server->address(), .trust = trust}).get(query).match() == Match{});
  query.problem = tiny_problem(3, 3000);
  CHECK(Client({.address = server->address(), .trust = trust}).get(query).match() ==
        Match{Departure::Bucket});
  CHECK_THAT(message_of([&] { Client({.address = maker.daemon()->address(), .trust = trust}).get(query); }),
             Contains("is not signed, and " + trust + " is the trust file"));
  write_file_atomic(maker.path("other"), replaced(trust_line(), kPublicKey, kOtherPublicKey));
  CHECK_THAT(message_of([&] {
               Client({.address = server->address(), .trust = maker.path("other").string()}).get(query);
             }),
             Contains("is signed by the key 1FD02E9933C7BA93, which"));
}

TEST_CASE("a daemon refuses a bundle with an older serial than it has served") {
  BundleMaker maker;
  REQUIRE(maker.create("new", 9).exit_code == 0);
  REQUIRE(maker.create("old", 8).exit_code == 0);
  Server server(maker, "new");
  server->start();
  server->stop();
  server->reap();
  server->options().bundle = maker.path("old");
  CHECK_THAT(server.refusal(), Contains("has the serial 8 of acme, and 9 was accepted before"));
}

TEST_CASE("a daemon refuses a bundle of an unknown key") {
  BundleMaker maker;
  REQUIRE(maker.create("acme.bundle").exit_code == 0);
  write_file_atomic(maker.path("trust"), replaced(trust_line(), kPublicKey, kOtherPublicKey));
  CHECK_THAT(Server(maker).refusal(), Contains("is signed by the key 1FD02E9933C7BA93, which"));
}

TEST_CASE("a daemon refuses a tampered bundle before it listens") {
  BundleMaker maker;
  REQUIRE(maker.create("acme.bundle").exit_code == 0);
  const std::string bytes = read_file(maker.path("acme.bundle"));
  write_file_atomic(maker.path("acme.bundle"), bytes.substr(0, bytes.size() / 2));
  Server server(maker);
  CHECK_THAT(server.refusal(), Contains("is not a whole tar archive"));
  CHECK_FALSE(std::filesystem::exists(server->socket()));
}

}  // namespace cubind::test
