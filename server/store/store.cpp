#include "server/store/store.hpp"

#include <utility>

#include "base/file.hpp"
#include "server/store/location.hpp"
#include "server/store/reader_pool.hpp"
#include "server/store/writer_thread.hpp"

namespace cubind {

std::unique_ptr<Store> Store::open(const StoreOptions& options) {
  create_folders(absolute_path(options.path).parent_path(), 0700);
  const std::filesystem::path path = store::resolved(absolute_path(options.path));
  store::refuse_network_file_system(path.parent_path());
  UniqueFd lock = store::lock_file(path);
  StoreOptions absolute = options;
  absolute.path = path;
  return std::unique_ptr<Store>(new Store(absolute, std::move(lock)));
}

Store::Store(const StoreOptions& options, UniqueFd lock)
    : path_(options.path),
      lock_(std::move(lock)),
      writer_(std::make_unique<store::WriterThread>(options, damaged_)),
      readers_(std::make_unique<store::ReaderPool>(options.path, options.readers, damaged_)) {}

Store::~Store() = default;

void Store::read(const std::function<void(StoreReader&)>& body) { readers_->read(body); }

void Store::write(const std::function<void(StoreWriter&)>& body) { writer_->write(body); }

void Store::write_behind(std::function<void(StoreWriter&)> body) { writer_->write_behind(std::move(body)); }

std::optional<std::string> Store::read_only_reason() const { return writer_->read_only_reason(); }

bool Store::try_recover() { return writer_->try_recover(); }

}  // namespace cubind
