#include "tests/postgres/store/postgres_test_database.hpp"

#include "server/store/postgresql/postgres_connection.hpp"
#include "tests/unit/server/test_database.hpp"

namespace cubind::test {
namespace {

class PostgresTestDatabase final : public TestDatabase {
 public:
  std::unique_ptr<Store> open() override {
    StoreOptions options;
    options.url = url_;
    return Store::open(options);
  }
  std::unique_ptr<store::Connection> connect() override {
    return std::make_unique<store::PostgresConnection>(url_, "test");
  }

 private:
  const std::string url_ = postgres_server().create_database();
};

}  // namespace

PostgresServer& postgres_server() {
  static PostgresServer server;
  return server;
}

std::unique_ptr<TestDatabase> TestDatabase::make() { return std::make_unique<PostgresTestDatabase>(); }

}  // namespace cubind::test
