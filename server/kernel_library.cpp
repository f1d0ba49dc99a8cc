#include "server/kernel_library.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
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
/// Clocks of file systems tick, and a network's or container's may be a little off.
constexpr std::chrono::seconds kSettled{2};

std::chrono::nanoseconds since_epoch(const timespec& time) {
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

bool same_files(const SpecBundle& a, const SpecBundle& b) {
  return a.spec_json == b.spec_json && a.files == b.files;
}

bool says_the_same(const KernelEntry* a, const KernelEntry* b) {
  return (!a && !b) || (a && b && a->revision == b->revision && a->error == b->error);
}

bool is_below(const fs::path& file, const fs::path& folder) {
  return std::ranges::mismatch(folder, file).in1 == folder.end();
}

}  // namespace

KernelLibrary::KernelLibrary(std::vector<fs::path> folders, const Clock& clock, std::vector<fs::path> shared)
    : folders_(std::move(folders)),
      shared_(std::move(shared)),
      clock_(clock),
      entries_(std::make_shared<Entries>()) {
  reload();
}

std::shared_ptr<const KernelLibrary::Entries> KernelLibrary::kernels() {
  look_again();
  const std::lock_guard lock(mutex_);
  return entries_;
}

std::uint64_t KernelLibrary::published() {
  look_again();
  return published_;
}

std::shared_ptr<const KernelEntry> KernelLibrary::find(const std::string& name) {
  const auto entries = kernels();
  const auto name_of = [](const auto& entry) -> const std::string& { return entry->name; };
  const auto same = std::ranges::equal_range(*entries, name, {}, name_of);
  for (const auto& entry : same) {
    if (entry->spec) {
      return entry;
    }
  }
  if (!same.empty()) {
    throw Error(ErrorCode::FailedPrecondition, "kernel " + quoted(name),
                "its spec does not parse: " + same.back()->error);
  }
  std::vector<std::string> names;
  std::ranges::transform(*entries, std::back_inserter(names), name_of);
  throw Error(ErrorCode::NotFound, "kernel", quoted(name) + " is not known" + suggestion(name, names));
}

void KernelLibrary::look_again() {
  const auto now = clock_.steady_now();
  auto next = next_look_.load();
  if (now < next || !next_look_.compare_exchange_strong(next, now + kBetweenLooks)) {
    return;
  }
  // Files are read under this lock. A caller that only asks for a kernel does not wait for it: if the lock is
  // taken, it goes on with the known specs.
  const std::unique_lock loading(loading_, std::try_to_lock);
  if (loading.owns_lock()) {
    look();
  }
}

void KernelLibrary::reload() {
  const std::lock_guard loading(loading_);
  look();
}

std::string KernelLibrary::judge(const fs::path& file) const {
  const auto own = folder_of(file, folders_);
  if (!own) {
    return "no folder of the daemon's kernels holds it: `cubind --kernels " + file.parent_path().string() +
           "` serves it";
  }
  const auto files = spec_files({*own});
  if (std::ranges::find(files, file) == files.end()) {
    throw Error(
        ErrorCode::InvalidArgument, file.string(),
        "the daemon does not read it: of " + own->string() +
            " it reads *.json in the folder itself and in its sub-folders (not deeper, not in `tables`), "
            "without names that begin with a dot and links that lead out");
  }
  load_kernel_spec(file.string(), {}, source_folders(file, folders_, shared_));
  return "";
}

void KernelLibrary::list_files() {
  std::map<fs::path, std::error_code> unlisted;
  std::vector<fs::path> files = spec_files(folders_, &unlisted);
  for (const auto& [folder, reason] : unlisted) {
    if (!unlisted_.contains(folder)) {
      log_error("kernels: " + folder.string() +
                " cannot be listed, and its known specs stay in force: " + reason.message());
    }
    for (const auto& [file, known] : loaded_) {
      if (is_below(file, folder) && std::ranges::find(files, file) == files.end()) {
        files.push_back(file);
      }
    }
  }
  if (!unlisted.empty()) {
    std::ranges::sort(files, {}, [&](const fs::path& file) {
      const auto folder =
          std::ranges::find_if(folders_, [&](const fs::path& at) { return is_below(file, at); });
      return std::pair(folder, file);
    });
  }
  unlisted_ = std::move(unlisted);
  order_ = std::move(files);
}

void KernelLibrary::look() {
  list_files();
  const std::set<fs::path> present(order_.begin(), order_.end());
  bool changed = std::erase_if(loaded_, [&](const auto& item) { return !present.contains(item.first); }) > 0;
  for (const fs::path& file : order_) {
    const auto found = loaded_.find(file);
    if (found != loaded_.end() && is_as_it_was(found->second)) {
      continue;
    }
    const bool is_new = found == loaded_.end();
    const std::shared_ptr<const KernelEntry> known = is_new ? nullptr : found->second.entry;
    Loaded now = load(file, known.get());
    if (!is_new && says_the_same(known.get(), now.entry.get())) {
      now.entry = known;  // the files were touched, nothing has changed
    } else {
      changed = true;
    }
    loaded_.insert_or_assign(file, std::move(now));
  }
  if (changed) {
    publish();
  }
}

KernelLibrary::Stamp KernelLibrary::stamp_of(const fs::path& file) {
  struct stat status {};
  Stamp stamp;
  stamp.exists = ::stat(file.c_str(), &status) == 0 && S_ISREG(status.st_mode);
  stamp.is_readable = ::faccessat(AT_FDCWD, file.c_str(), R_OK, AT_EACCESS) == 0;
  if (stamp.exists) {
    stamp.modified = since_epoch(status.st_mtim);
    stamp.changed = since_epoch(status.st_ctim);
    stamp.size = static_cast<std::uint64_t>(status.st_size);
    stamp.device = status.st_dev;
    stamp.inode = status.st_ino;
  }
  return stamp;
}

bool KernelLibrary::is_as_it_was(const Loaded& known) {
  return !known.unsettled && std::ranges::all_of(known.stamps, [](const auto& item) {
    return stamp_of(item.first) == item.second;
  });
}

KernelLibrary::Loaded KernelLibrary::load(const fs::path& file, const KernelEntry* known) {
  Loaded loaded;
  const SourceFolders folders = source_folders(file, folders_, shared_);
  const auto settled_before = clock_.wall_now().time_since_epoch() - kSettled;
  const auto note = [&](const fs::path& path) {
    const Stamp stamp = stamp_of(path);
    loaded.unsettled = loaded.unsettled || (stamp.exists && stamp.changed > settled_before);
    loaded.stamps.try_emplace(path.lexically_normal(), stamp);
  };
  if (valid_utf8(file.string()) != file.string()) {
    note(file);
    log_error("kernels: " + valid_utf8(file.string()) + " is left out: its name is not in UTF-8");
    return loaded;
  }
  try {
    const auto spec = load_kernel_spec(file.string(), note, folders);
    loaded.entry = parsed(spec, known);
    if (spec->triton) {
      // Its texts are named by their digests: no other file can be meant by the spec. There may be thousands.
      std::erase_if(loaded.stamps, [&](const auto& item) { return item.first != file.lexically_normal(); });
    }
    return loaded;
  } catch (const Error& error) {
    if (is_table_file(file, folders)) {
      return loaded;
    }
    // A file that cannot be read now may be readable in a moment, with the same stamp.
    loaded.unsettled = loaded.unsettled ||
                       (error.code() != ErrorCode::InvalidArgument && error.code() != ErrorCode::NotFound);
    auto broken = known ? std::make_shared<KernelEntry>(*known) : std::make_shared<KernelEntry>();
    if (!known) {
      broken->file = file.string();
      broken->name = file.stem().string();
    }
    broken->error = valid_utf8(error.what());
    loaded.entry = std::move(broken);
  }
  return loaded;
}

std::shared_ptr<const KernelEntry> KernelLibrary::parsed(std::shared_ptr<const KernelSpec> spec,
                                                         const KernelEntry* known) {
  auto entry = std::make_shared<KernelEntry>();
  entry->file = spec->file;
  entry->name = spec->name;
  entry->interface = interface_digest(*spec);
  entry->verification = verification_digest(*spec);
  const bool same = known && known->spec && same_files(known->spec->bundle, spec->bundle);
  entry->revision = same ? known->revision : ++last_revision_;
  if (same) {
    entry->spec = known->spec;
  } else {
    entry->spec = std::move(spec);
  }
  return entry;
}

void KernelLibrary::choose_holders() {
  std::map<std::string, fs::path> holders;
  for (const fs::path& file : order_) {
    const KernelEntry* entry = loaded_.at(file).entry.get();
    if (!entry || !entry->spec) {
      continue;
    }
    const auto before = holders_.find(entry->name);
    const auto [holder, is_first] = holders.try_emplace(entry->name, file);
    if (!is_first && before != holders_.end() && before->second == file) {
      holder->second = file;
    }
  }
  holders_ = std::move(holders);
}

std::shared_ptr<const KernelEntry> KernelLibrary::refused(const KernelEntry& entry) {
  auto refused = std::make_shared<KernelEntry>(entry);
  refused->spec.reset();
  refused->error += (entry.error.empty() ? "" : "; and ") + entry.file + " /name: " + quoted(entry.name) +
                    " is the name of " + holders_.at(entry.name).string() +
                    ", which stays in force until it is gone or renamed";
  return refused;
}

void KernelLibrary::tell(const fs::path& file, const KernelEntry& entry) const {
  const auto told = told_.find(file);
  const Published before = told == told_.end() ? Published() : told->second;
  if (!entry.error.empty()) {
    if (entry.error != before.error) {
      log_warning("kernels: " + entry.error + (entry.spec ? "; the last good version stays in force" : ""));
    }
  } else if (told != told_.end() && entry.revision != before.in_force) {
    log_info("kernels: " + entry.file + (before.in_force == 0 ? "" : " has changed and") + " is in force");
  }
}

void KernelLibrary::publish() {
  choose_holders();
  auto entries = std::make_shared<Entries>();
  std::map<fs::path, Published> told;
  for (const fs::path& file : order_) {
    std::shared_ptr<const KernelEntry> entry = loaded_.at(file).entry;
    if (!entry) {
      continue;
    }
    if (entry->spec && holders_.at(entry->name) != file) {
      entry = refused(*entry);
    }
    tell(file, *entry);
    told[file] = {entry->spec ? entry->revision : 0, entry->error};
    entries->push_back(std::move(entry));
  }
  told_ = std::move(told);
  std::ranges::stable_sort(*entries, {}, [](const auto& entry) { return entry->name; });
  const std::lock_guard lock(mutex_);
  entries_ = std::move(entries);
  ++published_;
  next_look_ = clock_.steady_now() + kBetweenLooks;
}

}  // namespace cubind
