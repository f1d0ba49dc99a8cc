#include "server/fsck.hpp"

#include <iostream>

#include "base/error.hpp"
#include "base/text.hpp"
#include "server/store/sqlite/store_check.hpp"

namespace cubind {

namespace {

/// A file that cannot even be opened as a database is damaged too.
StoreCheck checked(const std::filesystem::path& database) {
  try {
    return check_store(database);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::DataLoss) {
      throw;
    }
    StoreCheck check;
    check.damage.emplace_back(error.what());
    return check;
  }
}

}  // namespace

int fsck(const std::filesystem::path& database) {
  const StoreCheck check = checked(database);
  for (const std::string& damage : check.damage) {
    std::cout << "damage: " << printable(damage) << "\n";
  }
  for (const std::string& note : check.notes) {
    std::cout << "note: " << printable(note) << "\n";
  }
  std::cout << database.string() << ": read " << check.records << " records, " << check.artifacts
            << " artifacts, " << check.cubins << " cubins, " << check.trials << " trials, " << check.jobs
            << " jobs\n";
  if (check.damage.empty()) {
    std::cout << "the store is sound\n";
    return 0;
  }
  std::cout
      << "the store is damaged: put a backup in its place, or start the daemon, which leaves these rows "
         "out and measures and compiles them again\n";
  return 1;
}

}  // namespace cubind
