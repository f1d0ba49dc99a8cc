#include "server/defined_kernels.hpp"

#include <algorithm>
#include <fstream>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/log.hpp"
#include "base/text.hpp"

namespace cubind {

namespace fs = std::filesystem;

namespace {

// Hidden, so that the library does not see a part of a definition.
constexpr std::string_view kUnfinished = ".unfinished";
constexpr std::string_view kRemoved = ".removed";
constexpr std::chrono::hours kBetweenTouches{1};
constexpr const char* kHints = "hints";  // a line each
constexpr std::size_t kMostHints = 16;
constexpr const char* kForeign = "foreign";  // an empty file

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
  for (const fs::directory_entry& item : fs::recursive_directory_iterator(folder, failed)) {
    const std::uint64_t size = item.is_regular_file(failed) ? item.file_size(failed) : 0;
    bytes += failed ? 0 : size;
  }
  return bytes;
}

std::vector<std::string> hints_in(const fs::path& folder) {
  std::vector<std::string> hints;
  std::ifstream lines(folder / kHints);
  for (std::string hint; hints.size() < kMostHints && std::getline(lines, hint);) {
    hints.push_back(hint);
  }
  return hints;
}

}  // namespace

DefinedKernels::DefinedKernels(fs::path folder, DefinitionLimits limits)
    : folder_(std::move(folder)), limits_(limits) {
  std::error_code failed;
  for (const fs::directory_entry& item : fs::directory_iterator(folder_, failed)) {
    const std::string name = item.path().filename().string();
    if (!name.starts_with('.')) {
      const auto asked = item.last_write_time(failed);
      known_[name] = {bytes_below(item.path()), asked, asked, hints_in(item.path()),
                      fs::exists(item.path() / kForeign, failed)};
      for (const std::string& hint : known_[name].hints) {
        names_[hint] = name;
      }
    }
  }
}

bool DefinedKernels::may_hold(const fs::path& file) {
  return std::ranges::none_of(file, [](const fs::path& part) {
    return part.native().starts_with('.') || part.extension() == ".json" || part == kHints ||
           part == kForeign;
  });
}

bool DefinedKernels::is_known(const KernelSpec& spec, bool is_foreign) const {
  const fs::path folder = folder_ / spec.name;
  if (!fs::exists(folder / file_of(spec.name))) {
    return false;
  }
  const auto has = [&](const std::string& path, const std::string& content) {
    return fs::exists(folder / path) && read_file(folder / path) == content;
  };
  const bool is_same = spec.triton || (has(file_of(spec.name), spec.bundle.spec_json) &&
                                       std::ranges::all_of(spec.bundle.files, [&](const SourceFile& file) {
                                         return has(file.path, file.content);
                                       }));
  if (!is_same && is_foreign) {
    throw Error(ErrorCode::AlreadyExists, "DefineKernel /name",
                quoted(spec.name) + " is defined with other files: only the daemon's user replaces it");
  }
  return is_same;
}

bool DefinedKernels::add(const KernelSpec& spec, bool is_foreign) {
  const std::lock_guard changing(changing_);
  if (is_known(spec, is_foreign)) {
    if (!is_foreign) {
      vouch_for(spec.name);
    }
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
    write(spec, is_foreign);
  } catch (...) {
    std::error_code failed;  // on a full disk a part would take the room of the store
    fs::remove_all(folder_ / kUnfinished, failed);
    throw;
  }
  const std::lock_guard lock(mutex_);
  const auto now = fs::file_time_type::clock::now();
  forget(spec.name);
  known_[spec.name] = {bytes, now, now, {}, is_foreign};
  return true;
}

bool DefinedKernels::is_foreign(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = known_.find(name);
  return found != known_.end() && found->second.is_foreign;
}

void DefinedKernels::vouch_for(const std::string& name) {
  std::error_code failed;  // then a later daemon waits for the next time
  fs::remove(folder_ / name / kForeign, failed);
  const std::lock_guard lock(mutex_);
  if (const auto found = known_.find(name); found != known_.end()) {
    found->second.is_foreign = false;
  }
}

bool DefinedKernels::remove(const std::string& name) {
  const std::lock_guard changing(changing_);
  {
    const std::lock_guard lock(mutex_);
    forget(name);
  }
  return !remove_folder(name);
}

void DefinedKernels::forget(const std::string& name) {
  for (const std::string& hint : known_[name].hints) {
    names_.erase(hint);
  }
  known_.erase(name);
}

void DefinedKernels::hinted(const std::string& name, const std::string& hint) {
  if (find(hint) == name) {
    return;  // nearly every question: it waits for no write
  }
  const std::lock_guard changing(changing_);
  std::vector<std::string> changed{name};
  {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(name);
    if (found == known_.end()) {
      return;
    }
    if (const auto before = names_.find(hint); before != names_.end()) {
      std::erase(known_[before->second].hints, hint);
      changed.push_back(before->second);
    }
    std::vector<std::string>& hints = found->second.hints;
    if (hints.size() == kMostHints) {
      names_.erase(hints.front());
      hints.erase(hints.begin());
    }
    hints.push_back(hint);
    names_[hint] = name;
  }
  for (const std::string& one : changed) {
    write_hints(one);
  }
}

void DefinedKernels::write_hints(const std::string& name) {
  std::string lines;
  {
    const std::lock_guard lock(mutex_);
    for (const std::string& one : known_[name].hints) {
      lines += one + "\n";
    }
  }
  try {
    write_file_atomic(folder_ / name / kHints, lines, 0600);
  } catch (const Error&) {
    // A later daemon is given it again.
  }
}

std::string DefinedKernels::find(const std::string& hint) {
  const std::lock_guard lock(mutex_);
  const auto found = names_.find(hint);
  return found == names_.end() ? "" : found->second;
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

void DefinedKernels::write(const KernelSpec& spec, bool is_foreign) const {
  const fs::path unfinished = folder_ / kUnfinished;
  fs::remove_all(unfinished);
  create_folders(unfinished, 0700);
  for (const SourceFile& file : spec.bundle.files) {
    create_folders((unfinished / file.path).parent_path(), 0700);
    write_file_atomic(unfinished / file.path, file.content, 0600);
  }
  if (is_foreign) {
    write_file_atomic(unfinished / kForeign, "", 0600);
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
    forget(removed.back());
  }
  return removed;
}

}  // namespace cubind
