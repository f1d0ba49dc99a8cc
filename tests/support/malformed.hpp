// Malformed specs and tables: valid ones with the changes that tests/golden/malformed lists.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/json.hpp"
#include "tests/support/paths.hpp"

namespace cubind::test {

struct MalformedFile {
  std::string path;
  std::string where;  // of the fault: a JSON Pointer or a line
  std::string cause;
};

/// Writes those of a kind ("specs" or "tables") into the folder, with the sources that they name.
inline std::vector<MalformedFile> write_malformed(const std::string& kind,
                                                  const std::filesystem::path& folder) {
  const auto golden = source_dir() / "tests/golden/malformed";
  std::filesystem::copy(golden / kind, folder, std::filesystem::copy_options::recursive);
  const OrderedJson valid = OrderedJson::parse(read_file(golden / kind / "valid.json"));
  std::vector<MalformedFile> files;
  for (const OrderedJson& entry : OrderedJson::parse(read_file(golden / (kind + ".json")))) {
    std::string text = valid.patch(entry.value("patch", OrderedJson::array())).dump(1);
    if (entry.contains("text")) {
      const std::string old = entry["text"][0];
      text.replace(text.find(old), old.size(), entry["text"][1].get<std::string>());
    } else if (entry.contains("cut_at")) {
      text.erase(text.find(entry["cut_at"].get<std::string>()));
    }
    const std::filesystem::path path = folder / entry["file"].get<std::string>();
    write_file_atomic(path, text);
    files.push_back({path.string(), entry["where"], entry["cause"]});
  }
  return files;
}

}  // namespace cubind::test
