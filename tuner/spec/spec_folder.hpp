// The places of kernel specs: the shipped ones and the folders that a user names.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "tuner/spec/kernel_spec.hpp"

namespace cubind {

/// The folder of shipped specs: ../variants next to the executable's folder, or that of the source tree it
/// was built in; absent if there is neither.
std::optional<std::filesystem::path> shipped_variants();

/// Every *.json of the folders and of their sub-folders but `tables`, without files and folders whose name
/// begins with a dot; in the order of folders and paths. A link to a folder outside is not followed. A file
/// that several folders or links lead to is one spec, by the path that led to it first. A folder that does
/// not exist holds none. A folder that cannot be listed for another reason may hold more than was found:
/// `unlisted` gets its path and the reason.
std::vector<std::filesystem::path> spec_files(
    const std::vector<std::filesystem::path>& folders,
    std::map<std::filesystem::path, std::error_code>* unlisted = nullptr);

/// The folder of `folders` that holds the file, by the path's names: the first.
std::optional<std::filesystem::path> folder_of(const std::filesystem::path& file,
                                               const std::vector<std::filesystem::path>& folders);

/// What the spec in `file` may read: its own folder of `folders` (else the one that it lies in) and the
/// `shared` ones.
SourceFolders source_folders(const std::filesystem::path& file,
                             const std::vector<std::filesystem::path>& folders,
                             const std::vector<std::filesystem::path>& shared);

struct KnownSpecs {
  std::map<std::string, std::shared_ptr<const KernelSpec>> specs;  // by the kernel's name
  std::map<std::string, std::string> broken;  // why, by the name of the file without .json
};

/// Reads spec_files(folders) as a daemon does: a spec reads its own folder and the shipped one. Of two specs
/// with one name it keeps the first. A tuning table is not a spec.
KnownSpecs load_specs(const std::vector<std::filesystem::path>& folders);

/// Whether the file is a tuning table that lies among the specs. A file that does not parse is not one, and
/// none that may not be read.
bool is_table_file(const std::filesystem::path& file, const SourceFolders& folders = {});

}  // namespace cubind
