// cubindctl kernels.
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "client/connection.hpp"
#include "client/cubindctl/commands.hpp"
#include "client/cubindctl/reply_json.hpp"
#include "client/cubindctl/terminal/terminal.hpp"
#include "client/cubindctl/terminal/text_table.hpp"

namespace cubind::ctl {
namespace {

/// The flags with their defaults: "CAUSAL=0".
std::string flags_of(const v1::Kernel& kernel) {
  std::vector<std::string> flags;
  for (const v1::NamedValue& flag : kernel.flags()) {
    flags.push_back(flag.name() + "=" + std::to_string(flag.value()));
  }
  return flags.empty() ? "-" : join(flags, " ");
}

}  // namespace

ExitCode run(const KernelsOptions& options, const CommonOptions& common) {
  const v1::ListKernelsReply reply =
      Connection(resolve_address(common.address)).list_kernels(common.deadline(), options.defined);
  if (common.json) {
    OutputJson kernels = OutputJson::array();
    for (const v1::Kernel& kernel : reply.kernels()) {
      kernels.push_back(json_of(kernel));
    }
    print_json({{"kernels", kernels}, {"defined", reply.defined()}});
    return ExitCode::Ok;
  }
  TextTable table({"KERNEL", "DIMS", "?TYPES", "??FLAGS", ">RECORDS", ">?SHIPPED", "TUNABLES"});
  for (const v1::Kernel& kernel : reply.kernels()) {
    if (kernel.error().empty() || kernel.keeps_last_good()) {
      table.add({kernel.name(), join(kernel.dims(), " "), join(kernel.types(), " "), flags_of(kernel),
                 std::to_string(kernel.records() - kernel.shipped_records()),
                 std::to_string(kernel.shipped_records()), join(kernel.tunables(), " ")});
    }
  }
  table.print(std::cout, output_columns());
  for (const v1::Kernel& kernel : reply.kernels()) {
    if (!kernel.error().empty()) {
      std::cout << (kernel.keeps_last_good() ? "changed, but the last good version stays in force: "
                                             : "not usable: ")
                << kernel.error() << "\n";
    }
  }
  if (reply.defined() > 0 && !options.defined) {
    std::cout << "kernels that callers have defined: " << reply.defined() << ", listed with --defined\n";
  }
  return ExitCode::Ok;
}

}  // namespace cubind::ctl
