// cubindctl kernels and kernels check.
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "client/connection.hpp"
#include "client/cubindctl/commands.hpp"
#include "client/cubindctl/json_output.hpp"
#include "client/cubindctl/text_table.hpp"
#include "tuner/plan/wire.hpp"
#include "tuner/spec/kernel_spec.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind::ctl {
namespace {

constexpr std::size_t kMuch = std::size_t{1} << 20;

// The spec with every file that its sources may include: the daemon need not see this machine's files.
v1::CheckKernelRequest request_of(const CheckOptions& options) {
  const SpecBundle bundle = load_kernel_spec(options.file)->bundle;
  v1::CheckKernelRequest request;
  request.set_file(options.file);
  request.set_spec_json(bundle.spec_json);
  for (const SourceFile& file : bundle.files) {
    v1::SourceFile& added = *request.add_files();
    added.set_path(file.path);
    added.set_content(file.content);
  }
  if (request.ByteSizeLong() > kMuch) {
    compress_files(*request.mutable_files());
  }
  for (const std::string& problem : options.problems) {
    to_wire(parse_problem(problem), *request.add_problems());
  }
  for (const std::string& architecture : options.architectures) {
    request.add_architectures(architecture);
  }
  return request;
}

void print(const v1::CheckKernelReply& reply) {
  std::cout << reply.kernel() << ": the spec is valid\n";
  for (const v1::CheckKernelReply::ProblemReport& report : reply.problems()) {
    std::cout << "  " << to_string(problem_from_wire(report.problem(), "problem")) << ": " << report.valid()
              << " of " << report.total() << " configurations are valid, default "
              << to_string(configuration_from_wire(report.first_default(), "first_default")) << "\n";
  }
  for (const v1::ArtifactInfo& artifact : reply.compiled()) {
    std::cout << "  compiled for " << artifact.architecture() << " by " << artifact.toolchain() << ": "
              << size_text(artifact.cubin_bytes()) << "\n";
    for (const v1::EntryResources& entry : artifact.entries()) {
      std::cout << "    " << entry.entry_symbol() << ": " << entry.registers() << " registers, "
                << entry.static_shared_bytes() << " B static shared, "
                << entry.spill_store_bytes() + entry.spill_load_bytes() << " B spilled\n";
    }
  }
  for (const std::string& warning : reply.warnings()) {
    std::cout << "  warning: " << warning << "\n";
  }
}

}  // namespace

ExitCode run(const KernelsOptions&, const CommonOptions& common) {
  const v1::ListKernelsReply reply =
      Connection(resolve_address(common.address)).list_kernels(common.deadline());
  if (common.json) {
    OutputJson kernels = OutputJson::array();
    for (const v1::Kernel& kernel : reply.kernels()) {
      kernels.push_back(json_of(kernel));
    }
    print_json({{"kernels", kernels}});
    return ExitCode::Ok;
  }
  TextTable table({"KERNEL", "DIMS", "TYPES", ">RECORDS", "TUNABLES"});
  for (const v1::Kernel& kernel : reply.kernels()) {
    if (kernel.error().empty() || kernel.keeps_last_good()) {
      table.add({kernel.name(), join(kernel.dims(), " "), join(kernel.types(), " "),
                 std::to_string(kernel.records()), join(kernel.tunables(), " ")});
    }
  }
  table.print(std::cout);
  for (const v1::Kernel& kernel : reply.kernels()) {
    if (!kernel.error().empty()) {
      std::cout << (kernel.keeps_last_good() ? "changed, but the last good version stays in force: "
                                             : "not usable: ")
                << kernel.error() << "\n";
    }
  }
  return ExitCode::Ok;
}

ExitCode run(const CheckOptions& options, const CommonOptions& common) {
  const v1::CheckKernelRequest request = request_of(options);
  const v1::CheckKernelReply reply =
      Connection(resolve_address(common.address)).check_kernel(request, common.deadline());
  if (common.json) {
    print_json(json_of(reply));
  } else {
    print(reply);
  }
  return ExitCode::Ok;
}

}  // namespace cubind::ctl
