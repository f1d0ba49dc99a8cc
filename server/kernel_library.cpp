#include "server/kernel_library.hpp"

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "tuner/spec/keys.hpp"
#include "tuner/spec/spec_folder.hpp"

namespace cubind {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kBetweenLooks{1};

}  // namespace

KernelLibrary::KernelLibrary(std::vector<fs::path> folders, const Clock& clock)
    : folders_(std::move(folders)), clock_(clock), entries_(std::make_shared<Entries>()) {
  reload();
}

std::shared_ptr<const KernelLibrary::Entries> KernelLibrary::kernels() {
  look_again();
  const std::lock_guard lock(mutex_);
  return entries_;
}

std::shared_ptr<const KernelEntry> KernelLibrary::find(const std::string& name) {
  const auto entries = kernels();
  std::vector<std::string> names;
  std::shared_ptr<const KernelEntry> broken;
  for (const auto& entry : *entries) {
    if (entry->name == name && entry->spec) {
      return entry;
    }
    if (entry->name == name) {
      broken = entry;
    }
    names.push_back(entry->name);
  }
  if (broken) {
    throw Error(ErrorCode::FailedPrecondition, "kernel " + quoted(name),
                "its spec does not parse: " + broken->error);
  }
  throw Error(ErrorCode::NotFound, "kernel", quoted(name) + " is not known" + suggestion(name, names));
}

void KernelLibrary::look_again() {
  {
    const std::lock_guard lock(mutex_);
    if (clock_.steady_now() < next_look_) {
      return;
    }
    next_look_ = clock_.steady_now() + kBetweenLooks;
  }
  reload();
}

void KernelLibrary::reload() {
  // Files are read under this lock, which nobody waits for: a caller that finds it taken goes on with what is
  // known.
  const std::unique_lock loading(loading_, std::try_to_lock);
  if (!loading.owns_lock()) {
    return;
  }
  order_ = spec_files(folders_);
  const std::set<fs::path> present(order_.begin(), order_.end());
  bool changed = std::erase_if(loaded_, [&](const auto& item) { return !present.contains(item.first); }) > 0;
  for (const fs::path& file : order_) {
    const auto known = loaded_.find(file);
    if (known != loaded_.end() && stamps_of(*known->second.entry, file) == known->second.stamps) {
      continue;
    }
    loaded_.insert_or_assign(file, load(file));
    changed = true;
  }
  if (changed) {
    publish();
  }
}

KernelLibrary::Stamps KernelLibrary::stamps_of(const KernelEntry& entry, const fs::path& file) {
  Stamps stamps;
  const auto add = [&](const fs::path& path) {
    std::error_code failed;
    stamps[path] = {fs::last_write_time(path, failed), fs::file_size(path, failed)};
  };
  add(file);
  if (entry.spec) {
    for (const SourceFile& source : entry.spec->bundle.files) {
      add((file.parent_path() / source.path).lexically_normal());
    }
    return stamps;
  }
  // Of a broken spec it is not known which files it needs: a change of any file beside it is a reason to try
  // again.
  std::error_code failed;
  for (const auto& item : fs::directory_iterator(file.parent_path(), failed)) {
    if (item.is_regular_file(failed)) {
      add(item.path());
    }
  }
  return stamps;
}

KernelLibrary::Loaded KernelLibrary::load(const fs::path& file) {
  auto entry = std::make_shared<KernelEntry>();
  entry->file = file.string();
  entry->name = file.stem().string();
  entry->revision = ++last_revision_;
  // The files are looked at before they are read: a change in between is seen the next time.
  Stamps before = stamps_of(*entry, file);
  try {
    entry->spec = load_kernel_spec(file.string());
    entry->name = entry->spec->name;
    entry->interface = interface_digest(*entry->spec);
    entry->verification = verification_digest(*entry->spec);
    return {entry, stamps_of(*entry, file)};
  } catch (const Error& error) {
    entry->error = error.what();
    if (!is_table_file(file)) {
      log_warning("kernels: " + entry->error);
    }
  }
  return {entry, std::move(before)};
}

void KernelLibrary::publish() {
  auto entries = std::make_shared<Entries>();
  std::map<std::string, std::string> first;  // name to file
  for (const fs::path& file : order_) {
    std::shared_ptr<const KernelEntry> entry = loaded_.at(file).entry;
    if (!entry->spec && is_table_file(file)) {
      continue;
    }
    if (entry->spec && !first.try_emplace(entry->name, entry->file).second) {
      auto duplicate = std::make_shared<KernelEntry>(*entry);
      duplicate->spec.reset();
      duplicate->error = entry->file + " /name: " + quoted(entry->name) + " is the name of " +
                         first.at(entry->name) + " already, which stands";
      entry = std::move(duplicate);
    }
    entries->push_back(std::move(entry));
  }
  std::ranges::stable_sort(*entries, {}, [](const auto& entry) { return entry->name; });
  const std::lock_guard lock(mutex_);
  entries_ = std::move(entries);
  next_look_ = clock_.steady_now() + kBetweenLooks;
}

}  // namespace cubind
