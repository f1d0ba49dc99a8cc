#include "server/defined_kernels.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/log.hpp"

namespace cubind {

namespace fs = std::filesystem;

namespace {

// Hidden, so that the library does not see a part of a definition.
constexpr std::string_view kUnfinished = ".unfinished";
constexpr std::string_view kRemoved = ".removed";
constexpr std::chrono::hours kBetweenTouches{1};

std::string file_of(const std::string& name) { return name + ".json"; }

std::uint64_t bytes_of(const SpecBundle& bundle) {
  std::uint64_t bytes = bundle.spec_json.size();
  for (const SourceFile& file : bundle.files) {
    bytes += file.content.size();
  }
  return bytes;
}

std::uint64_t bytes_below(const fs::path& folder) {
  std::uint64_t bytes = 0;
  std::error_code failed;
  for (const fs::directory_entry& item : fs::directory_iterator(folder, failed)) {
    const std::uint64_t size = item.file_size(failed);
    bytes += failed ? 0 : size;
  }
  return bytes;
}

}  // namespace

DefinedKernels::DefinedKernels(fs::path folder, DefinitionLimits limits)
    : folder_(std::move(folder)), limits_(limits) {
  std::error_code failed;
  for (const fs::directory_entry& item : fs::directory_iterator(folder_, failed)) {
    const std::string name = item.path().filename().string();
    if (!name.starts_with('.')) {
      const auto asked = item.last_write_time(failed);
      known_[name] = {bytes_below(item.path()), asked, asked};
    }
  }
}

bool DefinedKernels::add(const KernelSpec& spec) {
  const std::lock_guard changing(changing_);
  if (fs::exists(folder_ / spec.name / file_of(spec.name))) {
    asked(spec.name);
    return false;
  }
  create_folders(folder_, 0700);
  const std::uint64_t bytes = bytes_of(spec.bundle);
  for (const std::string& name : make_room(bytes)) {
    const std::error_code failed = remove_folder(name);
    log_info("kernels: the definition " + name + ", which was not asked for longest, was removed" +
             (failed ? ": " + failed.message() : ""));
  }
  try {
    write(spec);
  } catch (...) {
    std::error_code failed;  // on a full disk a part would take the room of the store
    fs::remove_all(folder_ / kUnfinished, failed);
    throw;
  }
  const std::lock_guard lock(mutex_);
  const auto now = fs::file_time_type::clock::now();
  known_[spec.name] = {bytes, now, now};
  return true;
}

bool DefinedKernels::remove(const std::string& name) {
  const std::lock_guard changing(changing_);
  {
    const std::lock_guard lock(mutex_);
    known_.erase(name);
  }
  return !remove_folder(name);
}

void DefinedKernels::asked(const std::string& name) {
  const auto now = fs::file_time_type::clock::now();
  {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(name);
    if (found == known_.end()) {
      return;
    }
    found->second.asked = now;
    if (now - found->second.on_disk <= kBetweenTouches) {
      return;
    }
    found->second.on_disk = now;
  }
  std::error_code failed;  // then a later daemon has another order
  fs::last_write_time(folder_ / name, now, failed);
}

void DefinedKernels::write(const KernelSpec& spec) const {
  const fs::path unfinished = folder_ / kUnfinished;
  fs::remove_all(unfinished);
  create_folders(unfinished, 0700);
  for (const SourceFile& file : spec.bundle.files) {
    write_file_atomic(unfinished / file.path, file.content, 0600);
  }
  write_file_atomic(unfinished / file_of(spec.name), spec.bundle.spec_json, 0600);
  std::error_code failed = remove_folder(spec.name);  // a folder without the file is of no use
  fs::rename(unfinished, folder_ / spec.name, failed);
  if (failed) {
    throw Error(ErrorCode::Unavailable, (folder_ / spec.name).string(), failed.message());
  }
}

std::error_code DefinedKernels::remove_folder(const std::string& name) const {
  std::error_code failed;
  fs::remove_all(folder_ / kRemoved, failed);
  fs::rename(folder_ / name, folder_ / kRemoved, failed);
  if (!failed) {
    fs::remove_all(folder_ / kRemoved, failed);
  }
  return failed;
}

std::vector<std::string> DefinedKernels::make_room(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, definition] : known_) {
    bytes += definition.bytes;
  }
  std::vector<std::string> removed;
  while (!known_.empty() && (known_.size() >= limits_.count || bytes > limits_.bytes)) {
    const auto oldest =
        std::ranges::min_element(known_, {}, [](const auto& item) { return item.second.asked; });
    bytes -= oldest->second.bytes;
    removed.push_back(oldest->first);
    known_.erase(oldest);
  }
  return removed;
}

}  // namespace cubind
