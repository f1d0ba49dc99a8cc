#include "server/copy_store.hpp"

#include <iostream>

#include "base/error.hpp"
#include "server/store/store.hpp"
#include "server/store/store_copy.hpp"

namespace cubind {
namespace {

/// Shown as the holder to a daemon that finds the store locked.
constexpr const char* kHolder = "--copy-store-to";

}  // namespace

int copy_store(const Config& config) {
  StoreOptions from{.path = config.database, .address = kHolder, .url = config.store_url};
  if (from.url.empty() && !std::filesystem::exists(from.path)) {
    throw Error(ErrorCode::NotFound, from.path.string(),
                "there is no store: name it with --db FILE or --store URL");
  }
  const auto source = Store::open(from);
  const auto target = Store::open({.path = config.copy_to, .address = kHolder, .url = config.copy_to_url});
  const StoreContent copied = copy_store(*source, *target);
  for (const auto& [table, count] : copied.rows) {
    std::cout << table << ": " << count << "\n";
  }
  std::cout << source->location() << " was copied to " << target->location()
            << "\ndigest of both: " << copied.digest.hex() << "\n";
  return 0;
}

}  // namespace cubind
