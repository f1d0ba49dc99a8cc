// cubindctl backup: a copy of the daemon's store, also of one on another machine.
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/pending_file.hpp"
#include "client/connection.hpp"
#include "client/cubindctl/commands.hpp"
#include "client/cubindctl/terminal/json_output.hpp"
#include "client/cubindctl/terminal/text_table.hpp"

namespace cubind::ctl {

ExitCode run(const BackupOptions& options, const CommonOptions& common) {
  const Connection connection(resolve_address(common.address));
  PendingFile file(replaceable_file(options.output));
  const std::uint64_t bytes =
      connection.backup([&](std::string_view data) { file.append(data); }, common.timeout);
  file.commit(0600);
  if (common.json) {
    print_json({{"file", options.output}, {"bytes", bytes}});
  } else {
    std::cout << options.output << ": " << size_text(bytes) << ", a copy of the daemon's store\n";
  }
  return ExitCode::Ok;
}

}  // namespace cubind::ctl
