// A daemon whose store lies in PostgreSQL.
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "tests/support/postgres_server.hpp"
#include "tests/support/tiny_daemon.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;

struct PostgresDaemon {
  PostgresServer server;
  std::string url = server.create_database();
  TinyDaemon daemon{{.problems = {tiny_problem(2), tiny_problem(3)}, .arguments = {"--store", url}}};

  v1::GetVariantReply answer() {
    const Connection connection = daemon->connect();
    return connection.get_variant(question(connection, tiny_problem(2)), kPatience);
  }
  v1::GetStatusReply status() { return daemon->connect().get_status(kPatience); }
};

TEST_CASE("a daemon that is killed answers with the same bytes from PostgreSQL when it starts again") {
  PostgresDaemon f;
  REQUIRE(tune(f.daemon->connect(), {tiny_problem(2)}).at(0).job().state() == v1::Job::DONE);
  const std::string before = f.answer().artifact().digest();
  REQUIRE_FALSE(before.empty());
  f.daemon->kill();
  f.daemon->reap();
  f.daemon->start();
  CHECK(f.answer().artifact().digest() == before);
  CHECK(f.status().store_path() == f.url);
  CHECK(f.status().records() == 1);
}

TEST_CASE("without its server a daemon answers what it knows and refuses a tune with the cause") {
  PostgresDaemon f;
  tune(f.daemon->connect(), {tiny_problem(2)});
  const std::string before = f.answer().artifact().digest();
  f.server.stop();
  CHECK(f.answer().artifact().digest() == before);
  CHECK_THROWS_WITH(tune(f.daemon->connect(), {tiny_problem(3)}), Contains("PostgreSQL"));
  const Connection connection = f.daemon->connect();
  CHECK_THROWS_WITH(connection.get_variant(question(connection, tiny_problem(4)), kPatience),
                    Contains("PostgreSQL"));
  REQUIRE(eventually([&] { return f.status().read_only(); }));
  CHECK_THAT(f.status().read_only_reason(), Contains("PostgreSQL"));
  f.server.start();
  REQUIRE(eventually([&] { return !f.status().read_only(); }));
  CHECK(tune(f.daemon->connect(), {tiny_problem(3)}).at(0).job().state() == v1::Job::DONE);
  CHECK(f.status().records() == 2);
}

TEST_CASE("without its server a daemon answers what it knows whatever was stored since") {
  PostgresDaemon f;
  TinyDaemon other({.problems = {tiny_problem(2), tiny_problem(3)}, .arguments = {"--store", f.url}});
  tune(f.daemon->connect(), {tiny_problem(2)});
  const std::string before = f.answer().artifact().digest();
  tune(GENERATE_REF(&f.daemon, &other)->operator->()->connect(), {tiny_problem(3)});
  REQUIRE(eventually([&] { return f.status().records() == 2; }));
  f.server.stop();
  CHECK(f.answer().artifact().digest() == before);
}

TEST_CASE("an artifact that names another cubin than its record is compiled again") {
  PostgresDaemon f;
  tune(f.daemon->connect(), {tiny_problem(2)});
  const std::string before = f.answer().artifact().digest();
  f.daemon->kill();
  f.daemon->reap();
  f.server.execute(f.url,
                   "UPDATE artifacts a SET cubin = (SELECT cubin FROM blobs WHERE cubin <> a.cubin LIMIT 1)");
  f.daemon->start();
  const v1::GetVariantReply after = f.answer();
  CHECK(after.artifact().digest() == before);
  CHECK(after.provenance().same_bytes_measured());
}

TEST_CASE("a daemon refuses a password in the URL and a second place for its store") {
  PostgresDaemon f;
  const auto refused = [&](const std::vector<std::string>& arguments) {
    TinyDaemon other({.arguments = arguments}, false);
    CHECK_FALSE(other->run_to_end(kPatience).success());
    return other->log();
  };
  const std::string with_password = refused({"--store", "postgresql://cubind:secret@localhost/cubind"});
  CHECK_THAT(with_password, Contains("PGPASSFILE") && !Contains("secret"));
  CHECK_THAT(refused({"--store", f.url, "--db-max-bytes", "1GiB"}), Contains("give one of them"));
}

}  // namespace
}  // namespace cubind::test
