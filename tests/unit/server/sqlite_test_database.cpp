#include "server/store/sqlite/database.hpp"
#include "tests/unit/server/test_database.hpp"

namespace cubind::test {
namespace {

class SqliteTestDatabase final : public TestDatabase {
 public:
  std::unique_ptr<Store> open() override { return Store::open({path}); }
  std::unique_ptr<store::Connection> connect() override {
    return std::make_unique<store::Database>(path, store::Database::Mode::Create);
  }
};

}  // namespace

std::unique_ptr<TestDatabase> TestDatabase::make() { return std::make_unique<SqliteTestDatabase>(); }

}  // namespace cubind::test
