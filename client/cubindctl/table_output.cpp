#include "client/cubindctl/table_output.hpp"

#include <iostream>
#include <nlohmann/json.hpp>

#include "base/file.hpp"

namespace cubind::ctl {

void output_table(const std::string& file, const std::string& table, const std::string& summary,
                  const OutputJson& counts, const CommonOptions& common) {
  if (file.empty()) {
    std::cout << table << std::flush;
    return;
  }
  write_output(file, table);
  if (common.json) {
    OutputJson document{{"file", file}, {"size_bytes", table.size()}};
    document.update(counts);
    print_json(document);
  } else {
    std::cout << "wrote " << file << ", " << table.size() << " bytes" << summary << "\n";
  }
}

}  // namespace cubind::ctl
