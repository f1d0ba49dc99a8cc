#include "client/cubindctl/records/table_output.hpp"

#include <iostream>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "base/text.hpp"

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

v1::ExportTableRequest export_request(const RecordChoice& records) {
  v1::ExportTableRequest request;
  for (const std::string& kernel : records.kernels) {
    request.add_kernels(kernel);
  }
  request.set_device(records.device);
  request.set_namespace_(records.name_space);
  request.set_include_replayed(records.replayed);
  request.set_include_provisional(records.provisional);
  request.set_include_shipped(records.shipped);
  return request;
}

std::string shipped_left_out(std::uint32_t records) {
  return records == 0 ? ""
                      : "left out " + counted(records, "record") +
                            " that came with cubind: --shipped includes " + (records == 1 ? "it" : "them");
}

void tell_what_is_left_out(const v1::TableChunk& table) {
  const auto tell = [](std::uint32_t rows, const char* of, const std::string& remedy) {
    if (rows > 0) {
      std::cerr << "left out " << counted(rows, "row") << of << ": " << remedy << "\n";
    }
  };
  const auto taken_by = [](const char* option, std::uint32_t rows) {
    return std::string(option) + (rows == 1 ? " includes it" : " includes them");
  };
  tell(table.replayed_left_out(), " of a replay device", taken_by("--replayed", table.replayed_left_out()));
  tell(table.provisional_left_out(), " measured next to other processes",
       taken_by("--provisional", table.provisional_left_out()));
  if (const std::string shipped = shipped_left_out(table.shipped_left_out()); !shipped.empty()) {
    std::cerr << shipped << "\n";
  }
  tell(table.damaged_left_out(), " whose device class is damaged in the store",
       "the next tuning job for that device mends it, then export again");
}

}  // namespace cubind::ctl
