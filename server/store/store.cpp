#include "server/store/store.hpp"

#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/log.hpp"
#include "server/store/generation_mark.hpp"
#include "server/store/location.hpp"
#include "server/store/reader_pool.hpp"
#include "server/store/writer_thread.hpp"

namespace cubind {
namespace {

std::unique_ptr<store::WriterThread> open_writer(const StoreOptions& options, store::DamagedRows& damaged) {
  const bool was_ours = store::GenerationMark::was_set_for(options.path);
  if (was_ours && store::mend_write_version(options.path)) {
    log_error(options.path.string() + ": a number of its header was damaged and has been written again");
  }
  try {
    return std::make_unique<store::WriterThread>(options, damaged);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::DataLoss) {
      throw;
    }
    if (!was_ours) {
      throw Error(ErrorCode::FailedPrecondition, options.path.string(),
                  "is no store of cubind: give --db another path (" + error.cause() + ")");
    }
    const std::filesystem::path aside = store::move_aside(options.path, RealClock().wall_text());
    log_error(options.path.string() + " is damaged (" + error.cause() + "): it is now " + aside.string() +
              ", and a new store is begun");
  }
  return std::make_unique<store::WriterThread>(options, damaged);
}

}  // namespace

std::unique_ptr<Store> Store::open(const StoreOptions& options) {
  store::make_folder(absolute_path(options.path).parent_path(),
                     "--db PATH or XDG_DATA_HOME names another place for the store");
  const std::filesystem::path path = store::resolved(absolute_path(options.path));
  store::refuse_network_file_system(path.parent_path());
  UniqueFd lock = store::lock_file(path, options.address);
  StoreOptions absolute = options;
  absolute.path = path;
  auto damaged = std::make_unique<store::DamagedRows>();
  auto writer = open_writer(absolute, *damaged);
  return std::unique_ptr<Store>(new Store(absolute, std::move(lock), std::move(damaged), std::move(writer)));
}

Store::Store(const StoreOptions& options, UniqueFd lock, std::unique_ptr<store::DamagedRows> damaged,
             std::unique_ptr<store::WriterThread> writer)
    : path_(options.path),
      lock_(std::move(lock)),
      damaged_(std::move(damaged)),
      writer_(std::move(writer)),
      readers_(std::make_unique<store::ReaderPool>(options.path, options.readers, *damaged_)) {}

Store::~Store() = default;

void Store::read(const std::function<void(StoreReader&)>& body) { readers_->read(body); }

void Store::write(const std::function<void(StoreWriter&)>& body) { writer_->write(body); }

void Store::write_behind(std::function<void(StoreWriter&)> body) { writer_->write_behind(std::move(body)); }

std::optional<std::string> Store::read_only_reason() const { return writer_->read_only_reason(); }

bool Store::try_recover() { return writer_->try_recover(); }

}  // namespace cubind
