// What the store of a test lies in: a file of SQLite or a database of PostgreSQL, by the source that the
// program links.
#pragma once

#include "base/file.hpp"
#include "server/store/store.hpp"

namespace cubind::store {
class Connection;
}

namespace cubind::test {

class TestDatabase {
 public:
  /// A new one, which goes with this object.
  static std::unique_ptr<TestDatabase> make();
  virtual ~TestDatabase() = default;

  virtual std::unique_ptr<Store> open() = 0;
  /// A connection behind the store's back.
  virtual std::unique_ptr<store::Connection> connect() = 0;

  TempDir folder;
  std::filesystem::path path = folder.path() / "store.db";  // of SQLite's file
};

}  // namespace cubind::test
