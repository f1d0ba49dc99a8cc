// A store in a file of SQLite.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/unique_fd.hpp"
#include "server/store/damaged_rows.hpp"
#include "server/store/engine.hpp"
#include "server/store/location.hpp"
#include "server/store/sqlite/database.hpp"
#include "server/store/sqlite/generation_mark.hpp"
#include "server/store/store.hpp"

namespace cubind::store {

/// Has the file's lock. A file that is damaged so far that a daemon cannot start with it is renamed aside,
/// and a new one is begun. Throws what Store::open() does about the file.
std::unique_ptr<Engine> open_sqlite(const StoreOptions& options, DamagedRows& damaged);

class SqliteEngine final : public Engine {
 public:
  /// Locks the file, and makes a new one a store. The path is that of the file itself. Throws DataLoss if the
  /// file is damaged and of no use any more, and what require_ours() throws.
  SqliteEngine(const StoreOptions& options, DamagedRows& damaged);

  void keep(UniqueFd lock) { lock_ = std::move(lock); }

  std::string location() const override { return path_.string(); }
  std::unique_ptr<Connection> connect_reader() override;
  UniqueFd snapshot() const override;
  void write(const std::function<void(StoreWriter&)>& body) override;
  void probe() override;
  void set_read_only(bool is_read_only) override;

 private:
  void set_up(std::uint32_t max_pages);
  /// Throws DataLoss where the file does not give what a daemon starts with.
  void make_usable();
  std::optional<std::string> first_damage();
  void require_usable();
  void insert_meta();
  void redraw_if_restored();
  Generation generation() { return StoreReader(database_, damaged_).generation(); }
  /// Tells the file from a copy of it put in its place: the inode. A copy that is written over it keeps that:
  /// GenerationMark tells those.
  std::string file_identity() const { return std::to_string(open_file_.inode); }
  std::string stored_identity();
  /// Throws Unavailable where the path no longer names the file that is open.
  void require_open_file() const;

  UniqueFd lock_;  // ends last
  const std::filesystem::path path_;
  const UniqueFd database_lock_;  // outlives the database
  const std::chrono::milliseconds patience_;
  GenerationMark mark_;
  Database database_;
  const FileId open_file_;  // as SQLite has opened it: a file of an image's layer is another one until then
  DamagedRows& damaged_;
};

}  // namespace cubind::store
