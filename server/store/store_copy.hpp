// A store in one database, copied to another of either engine.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/digest.hpp"

namespace cubind {

class Store;
namespace store {
class Connection;
}

struct StoreContent {
  std::vector<std::pair<std::string, std::uint64_t>> rows;  // by table
  /// Of all rows and the generation. Equal stores have equal ones, whatever they lie in: it leaves out the
  /// store's id and the columns that one engine alone has.
  Digest digest;

  bool operator==(const StoreContent&) const = default;
};

/// Reads everything. Any thread.
StoreContent content_of(Store& store);

/// One transaction, whose rows are read again before it is committed. The copy has the generations of `from`
/// under an id of its own; a damaged row stays one. Throws FailedPrecondition where `to` holds anything or
/// another daemon has it open.
StoreContent copy_store(Store& from, Store& to);

/// What a copy has of the engine's schema.
std::vector<std::string> copied_tables();
std::vector<std::string> copied_columns(store::Connection& connection, const std::string& table);

}  // namespace cubind
