// cubindctl export and import: tuning tables.
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "base/text.hpp"
#include "client/connection.hpp"
#include "client/cubindctl/commands.hpp"
#include "client/cubindctl/records/table_output.hpp"
#include "client/cubindctl/terminal/json_output.hpp"

namespace cubind::ctl {
ExitCode run(const ExportOptions& options, const CommonOptions& common) {
  v1::ExportTableRequest request = export_request(options.records);
  request.set_all_trials(options.all_trials);
  request.set_include_samples(options.samples);
  const v1::TableChunk table =
      Connection(resolve_address(common.address)).export_table(request, common.deadline());
  tell_what_is_left_out(table);
  output_table(options.output, table.json(), "",
               {{"replayed_left_out", table.replayed_left_out()},
                {"provisional_left_out", table.provisional_left_out()},
                {"shipped_left_out", table.shipped_left_out()},
                {"damaged_left_out", table.damaged_left_out()}},
               common);
  return ExitCode::Ok;
}

// Imports one file after the other. A refused file ends it; the files before it stay imported.
ExitCode run(const ImportOptions& options, const CommonOptions& common) {
  const Connection connection(resolve_address(common.address));
  OutputJson imported = OutputJson::array();
  for (const std::string& file : options.files) {
    const v1::ImportTableReply reply =
        connection.import_table(read_file(file), file, options.name_space, common.deadline());
    if (!common.json) {
      std::cout << file << ": " << counted(reply.records_added(), "record") << " added, "
                << reply.records_known() << " known already, " << counted(reply.trials_added(), "trial")
                << " added; generation " << reply.generation().number() << "\n";
    }
    imported.push_back({{"file", file},
                        {"records_added", reply.records_added()},
                        {"records_known", reply.records_known()},
                        {"trials_added", reply.trials_added()},
                        {"generation", json_of(reply.generation())}});
  }
  if (common.json) {
    print_json({{"imported", imported}});
  }
  return ExitCode::Ok;
}

}  // namespace cubind::ctl
