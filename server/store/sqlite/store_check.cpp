#include "server/store/sqlite/store_check.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/error.hpp"
#include "base/file.hpp"
#include "server/store/damaged_rows.hpp"
#include "server/store/fact_rows.hpp"
#include "server/store/location.hpp"
#include "server/store/sqlite/backup.hpp"
#include "server/store/sqlite/database.hpp"
#include "server/store/sqlite/schema.hpp"
#include "server/store/sqlite/sqlite_sql.hpp"
#include "server/store/store_reader.hpp"

namespace cubind {
namespace {

using store::Database;
using store::Statement;

class Check {
 public:
  explicit Check(Database& database) : database_(database), reader_(database, damaged_) {}

  StoreCheck run() {
    guarded("integrity_check", [&] { check_pages(); });
    guarded("foreign_key_check", [&] { check_references(); });
    guarded("rows", [&] { check_rows(); });
    guarded("cubins", [&] { check_cubins(); });
    guarded("records", [&] { check_records(); });
    std::ranges::copy(damaged_.locations(), std::back_inserter(found_.damage));
    return std::move(found_);
  }

 private:
  /// What cannot be read is damage too, and the other checks go on.
  void guarded(const std::string& what, const std::function<void()>& body) {
    try {
      body();
    } catch (const Error& error) {
      found_.damage.push_back(what + ": " + error.what());
    }
  }

  void check_pages() {
    Statement query = database_.query(store::sql::kIntegrity);
    while (query.step()) {
      if (std::string line = query.blob(); line != "ok") {
        found_.damage.push_back("integrity_check: " + line);
      }
    }
  }

  void check_references() {
    Statement query = database_.query(store::sql::kForeignKeys);
    while (query.step()) {
      std::string text = query.blob();
      text.append(": row ").append(query.blob());
      text.append(" refers to a row of ").append(query.blob()).append(" that is missing");
      found_.damage.push_back(std::move(text));
    }
  }

  void check_rows() {
    reader_.device_classes();
    RecordFilter every;
    every.current_only = false;
    found_.records = reader_.records(every).size();
    Statement artifacts = database_.query(store::sql::kArtifacts);
    found_.artifacts =
        store::read_sound<ArtifactRow>(artifacts, damaged_, store::read_fact<ArtifactRow>).size();
    found_.jobs = reader_.open_jobs().size() + reader_.ended_jobs().size();
    reader_.wants();
    for (const TrialRow& trial : reader_.all_trials({})) {
      ++found_.trials;
      reader_.blocks(trial);
      reader_.verifications(trial);
    }
  }

  void check_cubins() {
    std::vector<Digest> cubins;
    Statement query = database_.query(store::sql::kCubins);
    while (query.step()) {
      cubins.push_back(query.digest());
    }
    for (const Digest& cubin : cubins) {
      guarded("blobs", [&] { found_.cubins += reader_.blob(cubin) ? 1 : 0; });
    }
  }

  void check_records() {
    Statement lost = database_.query(store::sql::kRecordsWithoutTrial);
    while (lost.step()) {
      std::string text = "record ";
      text.append(lost.blob()).append(" (");
      text.append(lost.blob()).append(" ");
      text.append(lost.blob()).append(") has no trial any more: `cubindctl tune --retune` measures it again");
      found_.notes.push_back(std::move(text));
    }
    Statement missing = database_.query(store::sql::kCountRecordsWithoutCubin);
    if (missing.step()) {
      if (const std::int64_t count = missing.integer(); count > 0) {
        found_.notes.push_back(std::to_string(count) +
                               " current records have no stored cubin: it is compiled for the next question");
      }
    }
  }

  Database& database_;
  store::DamagedRows damaged_;
  StoreReader reader_;
  StoreCheck found_;
};

/// Those that a connection that only reads makes, and cannot remove: they go if they are new.
class JournalFiles {
 public:
  explicit JournalFiles(const std::filesystem::path& store) {
    for (const char* suffix : {"-wal", "-shm"}) {
      const std::filesystem::path file = store.string() + suffix;
      if (!std::filesystem::exists(file)) {
        ours_.push_back(file);
      }
    }
  }
  ~JournalFiles() {
    for (const std::filesystem::path& file : ours_) {
      std::error_code ignored;
      std::filesystem::remove(file, ignored);
    }
  }
  JournalFiles(const JournalFiles&) = delete;
  JournalFiles& operator=(const JournalFiles&) = delete;

 private:
  std::vector<std::filesystem::path> ours_;
};

}  // namespace

StoreCheck check_store(const std::filesystem::path& given) {
  if (!std::filesystem::exists(given)) {
    throw Error(ErrorCode::NotFound, given.string(), "there is no such store");
  }
  const std::filesystem::path path = store::resolved(absolute_path(given));
  store::refuse_other_than_file(path);
  store::refuse_hard_link(path);
  const UniqueFd lock = store::lock_file(path, ""), database_lock = store::lock_database(path);
  const JournalFiles left_behind(path);
  Database database(path, Database::Mode::ReadOnly);
  store::require_ours(database, path.string());
  return Check(database).run();
}

}  // namespace cubind
