#include "server/defined_kernels.hpp"

#include <algorithm>
#include <vector>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/log.hpp"

namespace cubind {

namespace fs = std::filesystem;

namespace {

// Hidden, so that the library does not see a part of it.
constexpr std::string_view kUnfinished = ".unfinished";

struct Definition {
  fs::path folder;
  fs::file_time_type time;
};

std::vector<Definition> definitions(const fs::path& folder) {
  std::vector<Definition> found;
  std::error_code failed;
  for (const fs::directory_entry& item : fs::directory_iterator(folder, failed)) {
    if (!item.path().filename().string().starts_with('.')) {
      found.push_back({item.path(), item.last_write_time(failed)});
    }
  }
  std::ranges::sort(found, {}, &Definition::time);
  return found;
}

}  // namespace

bool DefinedKernels::add(const KernelSpec& spec) {
  const std::lock_guard lock(mutex_);
  if (fs::exists(folder_ / spec.name)) {
    return false;
  }
  create_folders(folder_, 0700);
  make_room();
  write(spec);
  return true;
}

void DefinedKernels::write(const KernelSpec& spec) const {
  const fs::path unfinished = folder_ / kUnfinished;
  fs::remove_all(unfinished);
  create_folders(unfinished, 0700);
  for (const SourceFile& file : spec.bundle.files) {
    write_file_atomic(unfinished / file.path, file.content, 0600);
  }
  write_file_atomic(unfinished / (spec.name + ".json"), spec.bundle.spec_json, 0600);
  std::error_code failed;
  fs::rename(unfinished, folder_ / spec.name, failed);
  if (failed) {
    throw Error(ErrorCode::Unavailable, (folder_ / spec.name).string(), failed.message());
  }
}

void DefinedKernels::make_room() const {
  std::vector<Definition> all = definitions(folder_);
  for (std::size_t i = 0; i + most_ <= all.size(); ++i) {
    std::error_code failed;
    fs::remove_all(all[i].folder, failed);
    log_info("kernels: the definition " + all[i].folder.filename().string() + " is the oldest of " +
             std::to_string(all.size()) + " and was removed" + (failed ? ": " + failed.message() : ""));
  }
}

}  // namespace cubind
