#include "server/store/store_copy.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <span>

#include "base/error.hpp"
#include "base/text.hpp"
#include "server/store/peers.hpp"
#include "server/store/sql.hpp"
#include "server/store/store.hpp"

namespace cubind {

using store::Connection;
using store::Statement;
using store::Value;

namespace sql = store::sql;

namespace {

/// Rows read at a time: a cubin has up to some megabytes.
constexpr std::size_t kPage = 64;

struct Table {
  std::string name;
  std::vector<std::string> key;
};

/// In the order in which they refer to each other. The tables of engines are left out.
const std::array<Table, 12> kTables{{
    {"device_classes", {"digest"}},
    {"blobs", {"cubin"}},
    {"blob_uses", {"cubin"}},
    {"artifacts", {"key"}},
    {"trials", {"key", "origin", "kernel"}},
    {"blocks", {"trial", "origin", "series", "stage", "position"}},
    {"verifications", {"trial", "origin", "series", "verification_digest", "problem", "after_timing"}},
    {"records", {"id"}},
    {"jobs", {"id"}},
    {"wants", {"key"}},
    {"pins", {"job"}},
    {"savings", {"only_row"}},
}};

/// That one engine alone has: the numbers of changes, the owners of jobs.
bool is_of_engine(const std::string& column) { return column == "change" || column == "owner"; }

std::string placeholders(std::size_t count) { return join(std::vector<std::string>(count, "?"), ", "); }

using Row = std::vector<Value>;

/// Hands over each row in the order of the table's key.
void each_row(Connection& connection, const Table& table, const std::vector<std::string>& columns,
              const std::function<void(const Row&)>& body) {
  const std::string key = join(table.key, ", ");
  const std::string select = "SELECT " + key + ", " + join(columns, ", ") + " FROM " + table.name;
  const std::string page = " ORDER BY " + key + " LIMIT " + std::to_string(kPage);
  const std::string first = select + page;
  const std::string next_ones =
      select + " WHERE (" + key + ") > (" + placeholders(table.key.size()) + ")" + page;
  Row last;
  for (std::size_t rows = kPage; rows == kPage;) {
    rows = 0;
    Statement query = connection.query(last.empty() ? first : next_ones);
    for (const Value& value : last) {
      query.bind(value);
    }
    Row next;
    for (; query.step(); ++rows) {
      next = query.values(table.key.size());
      body(query.values(columns.size()));
    }
    last = std::move(next);
  }
}

/// A prefix code of what the rows hold.
class ContentSum {
 public:
  void begin(const std::string& table) { hash_.update("t" + std::to_string(table.size()) + ":" + table); }
  void add(const Row& row) {
    std::string bytes = "r";
    for (const Value& value : row) {
      store::add_to(bytes, value);
    }
    hash_.update(bytes);
  }
  Digest finish() { return hash_.finish(); }

 private:
  Sha256 hash_;
};

std::uint64_t generation_of(Connection& connection) {
  Statement meta = connection.query(sql::kMeta);
  meta.step();
  meta.blob();
  return meta.unsigned_integer();
}

/// `seen`, of each row with its table and columns.
StoreContent read_content(
    Connection& connection,
    const std::function<void(const Table&, const std::vector<std::string>&, const Row&)>& seen) {
  StoreContent content;
  ContentSum sum;
  for (const Table& table : kTables) {
    sum.begin(table.name);
    const std::vector<std::string> columns = copied_columns(connection, table.name);
    std::uint64_t& count = content.rows.emplace_back(table.name, 0).second;
    each_row(connection, table, columns, [&](const Row& row) {
      sum.add(row);
      ++count;
      seen(table, columns, row);
    });
  }
  sum.begin("meta");
  sum.add(Row{static_cast<std::int64_t>(generation_of(connection))});
  content.digest = sum.finish();
  return content;
}

void insert_row(Connection& connection, const Table& table, const std::vector<std::string>& columns,
                const Row& row) {
  Statement query = connection.query("INSERT INTO " + table.name + " (" + join(columns, ", ") + ") VALUES (" +
                                     placeholders(columns.size()) + ")");
  for (const Value& value : row) {
    query.bind(value);
  }
  query.run();
}

bool is_empty(Connection& connection) {
  return std::ranges::all_of(kTables, [&](const Table& table) {
    return !connection.query("SELECT 1 FROM " + table.name + " LIMIT 1").step();
  });
}

}  // namespace

std::vector<std::string> copied_tables() {
  std::vector<std::string> names;
  std::ranges::transform(kTables, std::back_inserter(names), &Table::name);
  return names;
}

std::vector<std::string> copied_columns(Connection& connection, const std::string& table) {
  std::vector<std::string> columns;
  Statement query = connection.query(sql::kColumns);
  for (query.bind(table); query.step();) {
    if (std::string column = query.text(); !is_of_engine(column)) {
      columns.push_back(std::move(column));
    }
  }
  return columns;
}

class StoreCopy {
 public:
  static Connection& of(StoreReader& reader) { return reader.database_; }

  static StoreContent copy(StoreReader& from, StoreWriter& to) {
    Connection& target = of(to);
    if (!is_empty(target)) {
      throw Error(ErrorCode::FailedPrecondition, "target of the copy",
                  "is not empty: give a file that does not exist, or an empty database");
    }
    StoreContent read = read_content(of(from), [&](const Table& table, const auto& columns, const Row& row) {
      insert_row(target, table, columns, row);
    });
    target.query(sql::kSetGeneration).bind(generation_of(of(from))).run();
    if (const std::string& after = sql::kAfterCopy.in(target.dialect()); !after.empty()) {
      target.query(after).step();
    }
    if (read_content(target, [](const auto&, const auto&, const auto&) {}) != read) {
      throw Error(ErrorCode::DataLoss, "target of the copy",
                  "does not hold what was read: nothing was written");
    }
    return read;
  }
};

StoreContent content_of(Store& store) {
  StoreContent content;
  store.read([&](StoreReader& reader) {
    content = read_content(StoreCopy::of(reader), [](const auto&, const auto&, const auto&) {});
  });
  return content;
}

StoreContent copy_store(Store& from, Store& to) {
  if (to.peers() != nullptr && !to.peers()->alive().empty()) {
    throw Error(ErrorCode::FailedPrecondition, "target of the copy",
                "is in use by " + to.peers()->alive().front().name + ": end that daemon first");
  }
  StoreContent copied;
  from.read([&](StoreReader& reader) {
    to.write([&](StoreWriter& writer) { copied = StoreCopy::copy(reader, writer); });
  });
  return copied;
}

}  // namespace cubind
