// cubindctl kernels check: validates a kernel spec, says how its constraints thin the space, compiles.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "client/connection.hpp"
#include "client/cubindctl/answers/launch_text.hpp"
#include "client/cubindctl/commands.hpp"
#include "client/cubindctl/kernels/name_clash.hpp"
#include "client/cubindctl/kernels/private_daemon.hpp"
#include "client/cubindctl/reply_json.hpp"
#include "client/cubindctl/terminal/terminal.hpp"
#include "client/cubindctl/terminal/text_table.hpp"
#include "client/cubindctl/tune/problem_locations.hpp"
#include "plan/wire.hpp"
#include "tuner/spec/kernel_spec.hpp"
#include "tuner/spec/npy.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind::ctl {
namespace {

constexpr std::size_t kMuch = std::size_t{1} << 20;
constexpr std::chrono::seconds kDaemonAnswers{1};

/// The daemon's; if none is named and none runs, that of one for this check, which becomes `own`.
std::string address_of(const CommonOptions& common, std::optional<PrivateDaemon>& own) {
  std::string address = resolve_address(common.address);
  if (!common.address.empty() || std::getenv("CUBIND_ADDRESS") != nullptr) {
    return address;
  }
  try {
    Connection(address).is_serving(kDaemonAnswers);
    return address;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::Unavailable) {
      throw;
    }
  }
  return own.emplace().address();
}

// A check reads no data: zeros stand for them, which need no room in a message.
std::string without_data(const std::string& npy, const std::string& file) {
  const std::size_t bytes = read_npy(npy, file).data.size();
  return npy.substr(0, npy.size() - bytes) + std::string(bytes, '\0');
}

bool is_data(const KernelSpec& spec, const std::string& path) {
  return std::ranges::any_of(spec.arguments,
                             [&](const ArgumentSpec& argument) { return argument.fill.file == path; });
}

// The spec with every file that its sources may include: the daemon need not see this machine's files.
v1::CheckKernelRequest request_of(const CheckOptions& options) {
  if (const std::string kind = std::filesystem::path(options.file).extension(); kind.starts_with(".cu")) {
    throw Error(ErrorCode::InvalidArgument, options.file,
                "is a CUDA source: name the kernel spec, the .json file that lists it as its \"source\"");
  }
  const auto spec = load_kernel_spec(options.file);
  const SpecBundle& bundle = spec->bundle;
  v1::CheckKernelRequest request;
  request.set_file(absolute_path(options.file).string());
  request.set_spec_json(bundle.spec_json);
  for (const SourceFile& file : bundle.files) {
    v1::SourceFile& added = *request.add_files();
    added.set_path(file.path);
    added.set_content(is_data(*spec, file.path) ? without_data(file.content, file.path) : file.content);
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
  request.set_device(options.device);
  return request;
}

std::string problem_text(const v1::CheckKernelReply::ProblemReport& report) {
  return to_string(problem_from_wire(report.problem(), "problem"));
}

void print(const v1::CheckKernelReply::ProblemReport& report) {
  if (!report.error().empty()) {
    std::cout << "  " << problem_text(report) << ": " << one_line(report.error()) << "\n";
    return;
  }
  std::cout << "  " << problem_text(report) << ": " << report.valid() << " of " << report.total()
            << " configurations are valid";
  if (report.first_default().values_size() > 0) {
    std::cout << ", default " << to_string(configuration_from_wire(report.first_default(), "first_default"));
  }
  std::cout << "\n";
  for (const Launch& launch : plan_from_wire(report.plan(), "plan").launches) {
    const std::vector<std::string> maps = tensor_map_texts(launch);
    if (launch.cluster || launch.attributes != LaunchAttributes{} || !maps.empty()) {
      std::cout << "    " << launch_text(launch) << "\n";
    }
    for (const std::string& map : maps) {
      std::cout << "      tensor map " << map << "\n";
    }
  }
  TextTable table({">REJECTS", ">LEAVES", "CONDITION", "PLACE"});
  for (const v1::CheckKernelReply::Thinning& step : report.thinning()) {
    table.add({std::to_string(step.rejected()), std::to_string(step.left()), step.condition(), step.where()});
  }
  if (!table.empty()) {
    table.print(std::cout, output_columns(), "    ");
  }
}

void print(const v1::CheckKernelReply& reply) {
  std::cout << reply.kernel() << ": the spec is valid\n";
  for (const v1::CheckKernelReply::ProblemReport& report : reply.problems()) {
    print(report);
  }
  for (const v1::ArtifactInfo& artifact : reply.compiled()) {
    std::cout << "  compiled for " << artifact.architecture() << " by " << artifact.toolchain() << ": "
              << size_text(artifact.cubin_bytes()) << "\n";
    for (const v1::EntryResources& entry : artifact.entries()) {
      std::cout << "    " << entry.entry_symbol() << ": " << entry.registers() << " registers, "
                << entry.static_shared_bytes() + entry.launch_shared_bytes() << " B shared, "
                << entry.spill_store_bytes() + entry.spill_load_bytes() << " B spilled, "
                << (entry.tensor_cores() ? "tensor cores" : "no tensor cores") << "\n";
    }
  }
  for (const std::string& remark : reply.warnings()) {
    std::cout << (remark.starts_with("note: ") ? "  " : "  warning: ") << remark << "\n";
  }
}

// Errors are in terms of the command line.
v1::CheckKernelReply checked(const Connection& connection, const CheckOptions& options,
                             const v1::CheckKernelRequest& request, const CommonOptions& common) {
  std::vector<std::string> locations;
  for (const std::string& problem : options.problems) {
    locations.push_back("--problem " + problem);
  }
  v1::CheckKernelReply reply;
  try {
    with_locations(locations, [&] { reply = connection.check_kernel(request, common.deadline()); });
  } catch (const Error& error) {
    constexpr std::string_view kField = "architectures: ";
    const std::string message = error.what();
    if (!message.starts_with(kField)) {
      throw;
    }
    throw Error(error.code(), "--arch", message.substr(kField.size()));
  }
  const std::string clash = name_clash(connection, reply.kernel(), options.file, common.deadline());
  if (!clash.empty()) {
    reply.add_warnings("/name: " + clash);
  }
  return reply;
}

// Printed last: a script that reads the exit code alone learns that nothing was tried.
bool nothing_was_compiled(const v1::CheckKernelReply& reply, const CommonOptions& common) {
  if (!reply.compiled().empty()) {
    return false;
  }
  if (!common.json) {
    std::cout << "  nothing was compiled, so the check ends with 1: the warnings say why\n";
  }
  return true;
}

}  // namespace

// A problem without a valid configuration, or one that does not compile, is what a check is there to find.
ExitCode run(const CheckOptions& options, const CommonOptions& common) {
  const v1::CheckKernelRequest request = request_of(options);
  std::optional<PrivateDaemon> own;
  const Connection connection(address_of(common, own));
  const v1::CheckKernelReply reply = checked(connection, options, request, common);
  if (!common.json) {
    print(reply);
  }
  bool found = nothing_was_compiled(reply, common);
  for (const v1::CheckKernelReply::ProblemReport& report : reply.problems()) {
    found = found || report.valid() == 0 || !report.error().empty();
  }
  if (common.json) {
    print_json(json_of(reply));
  }
  return found ? ExitCode::Failure : ExitCode::Ok;
}

}  // namespace cubind::ctl
