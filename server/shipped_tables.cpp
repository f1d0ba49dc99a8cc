#include "server/shipped_tables.hpp"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/log.hpp"
#include "server/service/table_call.hpp"
#include "tuner/spec/spec_folder.hpp"
#include "tuner/table/table.hpp"

namespace cubind {

namespace fs = std::filesystem;

void import_shipped_tables(ServiceContext& context, const Config& config) {
  if (!config.shipped_tables || config.tables.empty() || context.index.snapshot()->generation().number != 0) {
    return;
  }
  std::error_code failed;
  std::vector<fs::path> files;
  for (const auto& item : fs::directory_iterator(config.tables, failed)) {
    if (item.path().extension() == ".json") {
      files.push_back(item.path());
    }
  }
  if (failed) {
    log_error("no tables are imported: " + config.tables.string() + ": " + failed.message());
  }
  std::ranges::sort(files);
  const auto variants = shipped_variants();
  const bool ships = variants && config.tables == *variants / "tables";
  for (const fs::path& file : files) {
    try {
      Table table = read_table(read_file(file), file.string());
      for (TableRecord& record : table.records) {
        record.evidence = ships ? Evidence::Shipped : record.evidence;
      }
      const ImportReport report = take_table(context, table, file.string(), {});
      log_info("imported " + std::to_string(report.records_added) + " records from " + file.string());
    } catch (const Error& error) {
      log_error(std::string("a shipped table is left out: ") + error.what());
    }
  }
}

}  // namespace cubind
