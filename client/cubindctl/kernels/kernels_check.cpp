// cubindctl kernels check: validates a kernel spec, says how its constraints thin the space, compiles.
#include <algorithm>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "client/connection.hpp"
#include "client/cubindctl/commands.hpp"
#include "client/cubindctl/kernels/name_clash.hpp"
#include "client/cubindctl/reply_json.hpp"
#include "client/cubindctl/terminal/terminal.hpp"
#include "client/cubindctl/terminal/text_table.hpp"
#include "client/cubindctl/tune/problem_places.hpp"
#include "plan/wire.hpp"
#include "tuner/spec/kernel_spec.hpp"
#include "tuner/spec/npy.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind::ctl {
namespace {

constexpr std::size_t kMuch = std::size_t{1} << 20;
constexpr std::uint32_t kPage = 16;  // configurations that are compiled in one call
constexpr std::chrono::minutes kPageDeadline{10};

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
  TextTable table({">REJECTS", ">LEAVES", "CONDITION", "PLACE"});
  for (const v1::CheckKernelReply::Thinning& step : report.thinning()) {
    table.add({std::to_string(step.rejected()), std::to_string(step.left()), step.condition(), step.place()});
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

// Every valid configuration, a page a call, so that a person sees them come.
class AllConfigurations {
 public:
  /// `entries`: of a configuration, each with figures of its own.
  AllConfigurations(const Connection& connection, const CommonOptions& common, v1::CheckKernelRequest request,
                    int entries)
      : connection_(connection),
        common_(common),
        request_(std::move(request)),
        width_(std::max(13, 6 * entries)) {
    request_.set_count(kPage);
  }

  void compile(const v1::CheckKernelReply::ProblemReport& report) {
    request_.clear_problems();
    *request_.add_problems() = report.problem();
    if (!common_.json) {
      std::cout << "  " << problem_text(report) << ":\n";
      print({"REGISTERS", "SPILLED_B", "SHARED_B", "TENSOR_CORES", "CUBIN_B"}, "CONFIGURATION");
    }
    OutputJson compiled = OutputJson::array();
    for (std::uint64_t first = 0; first < report.valid(); first += kPage) {
      request_.set_first(first);
      compile_page(compiled);
    }
    problems_.push_back({{"problem", json_of(problem_from_wire(report.problem(), "problem"))},
                         {"configurations", std::move(compiled)}});
  }

  bool any_failed() const { return any_failed_; }
  const OutputJson& json() const { return problems_; }

 private:
  void compile_page(OutputJson& compiled) {
    const v1::CheckKernelReply reply =
        connection_.check_kernel(request_, common_.timeout.value_or(kPageDeadline));
    for (const v1::CheckKernelReply::CompiledConfiguration& one : reply.configurations()) {
      if (!one.has_artifact() && one.error().empty()) {
        throw Error(ErrorCode::Unavailable, "compile", *reply.warnings().rbegin());
      }
      any_failed_ = any_failed_ || !one.error().empty();
      compiled.push_back(json_of(one));
      if (!common_.json) {
        print(one);
      }
    }
  }

  void print(const std::vector<std::string>& figures, const std::string& configuration) const {
    std::cout << "  ";
    for (const std::string& figure : figures) {
      std::cout << std::setw(width_) << figure;
    }
    std::cout << "  " << configuration << std::endl;
  }

  void print(const v1::CheckKernelReply::CompiledConfiguration& one) const {
    const std::string configuration =
        to_string(configuration_from_wire(one.configuration(), "configuration"));
    if (!one.error().empty()) {
      std::cout << "    does not compile: " << configuration << ": " << one_line(one.error()) << std::endl;
      return;
    }
    if (!one.constraint().empty()) {
      std::cout << "    cannot be launched: " << configuration << ": " << one_line(one.constraint())
                << std::endl;
      return;
    }
    std::vector<std::string> registers, spilled, shared,
        tensor_cores;  // of the entries, as they are launched
    for (const v1::EntryResources& entry : one.artifact().entries()) {
      registers.push_back(std::to_string(entry.registers()));
      spilled.push_back(std::to_string(entry.spill_store_bytes() + entry.spill_load_bytes()));
      shared.push_back(std::to_string(entry.static_shared_bytes() + entry.launch_shared_bytes()));
      tensor_cores.emplace_back(entry.tensor_cores() ? "yes" : "no");
    }
    print({join(registers, ","), join(spilled, ","), join(shared, ","), join(tensor_cores, ","),
           std::to_string(one.artifact().cubin_bytes())},
          configuration);
  }

  const Connection& connection_;
  const CommonOptions& common_;
  v1::CheckKernelRequest request_;
  const int width_;  // of a column
  OutputJson problems_ = OutputJson::array();
  bool any_failed_ = false;
};

// Errors are in terms of the command line.
v1::CheckKernelReply checked(const Connection& connection, const CheckOptions& options,
                             const v1::CheckKernelRequest& request, const CommonOptions& common) {
  std::vector<std::string> places;
  for (const std::string& problem : options.problems) {
    places.push_back("--problem " + problem);
  }
  v1::CheckKernelReply reply;
  try {
    with_places(places, [&] { reply = connection.check_kernel(request, common.deadline()); });
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
  const Connection connection(resolve_address(common.address));
  const v1::CheckKernelReply reply = checked(connection, options, request, common);
  if (!common.json) {
    print(reply);
  }
  AllConfigurations all(connection, common, request,
                        reply.compiled().empty() ? 1 : reply.compiled(0).entries_size());
  bool found = nothing_was_compiled(reply, common);
  for (const v1::CheckKernelReply::ProblemReport& report : reply.problems()) {
    found = found || report.valid() == 0 || !report.error().empty();
    if (options.all && report.error().empty()) {
      all.compile(report);
    }
  }
  if (common.json) {
    OutputJson document = json_of(reply);
    if (options.all) {
      document["all"] = all.json();
    }
    print_json(document);
  }
  return found || all.any_failed() ? ExitCode::Failure : ExitCode::Ok;
}

}  // namespace cubind::ctl
