#include "server/store/store.hpp"

#include <utility>

#include "base/error.hpp"
#include "server/store/engine.hpp"
#include "server/store/postgresql/postgres_engine.hpp"
#include "server/store/reader_pool.hpp"
#include "server/store/sqlite/sqlite_engine.hpp"
#include "server/store/writer_thread.hpp"

namespace cubind {
namespace {

std::unique_ptr<store::Engine> open_engine(const StoreOptions& options, store::DamagedRows& damaged) {
  if (options.url.empty()) {
    return store::open_sqlite(options, damaged);
  }
  store::PostgresOptions postgres;
  postgres.url = options.url;
  postgres.address = options.address;
  return std::make_unique<store::PostgresEngine>(std::move(postgres), damaged);
}

}  // namespace

std::unique_ptr<Store> Store::open(const StoreOptions& options) {
  auto damaged = std::make_unique<store::DamagedRows>();
  auto engine = open_engine(options, *damaged);
  return std::unique_ptr<Store>(new Store(options.readers, std::move(damaged), std::move(engine)));
}

Store::Store(unsigned readers, std::unique_ptr<store::DamagedRows> damaged,
             std::unique_ptr<store::Engine> engine)
    : damaged_(std::move(damaged)),
      engine_(std::move(engine)),
      writer_(std::make_unique<store::WriterThread>(*engine_)),
      readers_(std::make_unique<store::ReaderPool>(*engine_, readers, *damaged_)) {}

Store::~Store() = default;

std::string Store::location() const { return engine_->location(); }

void Store::read(const std::function<void(StoreReader&)>& body) {
  try {
    readers_->read(body);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::Unavailable && !read_only_reason()) {
      writer_->probe_behind();  // finds out what the store takes now
    }
    throw;
  }
}

StoreCounts Store::counts() {
  const std::uint64_t commits = writer_->commits();
  if (peers() == nullptr) {
    const std::lock_guard lock(counts_mutex_);
    if (counted_ && counted_at_ == commits) {
      return *counted_;
    }
  }
  StoreCounts counts;
  try {
    read([&](StoreReader& reader) { counts = reader.counts(); });
  } catch (const Error& error) {
    if (error.code() != ErrorCode::Unavailable) {
      throw;
    }
    return counts;
  }
  const std::lock_guard lock(counts_mutex_);
  counted_ = counts;
  counted_at_ = commits;  // from before the reading: a commit since then is counted at the next call
  return counts;
}

void Store::write(const std::function<void(StoreWriter&)>& body) { writer_->write(body); }

void Store::write_behind(std::function<void(StoreWriter&)> body) { writer_->write_behind(std::move(body)); }

store::Peers* Store::peers() const { return engine_->peers(); }

UniqueFd Store::snapshot() const { return engine_->snapshot(); }

std::optional<std::string> Store::read_only_reason() const { return writer_->read_only_reason(); }

bool Store::try_recover() { return writer_->try_recover(); }

}  // namespace cubind
