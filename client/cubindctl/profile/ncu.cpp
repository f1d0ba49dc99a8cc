#include "client/cubindctl/profile/ncu.hpp"

#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "base/environment.hpp"
#include "base/file.hpp"
#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "client/cubindctl/profile/ncu_csv.hpp"

namespace cubind::ctl {
namespace {

std::string variable_or_nothing(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing sets it meanwhile
  return value == nullptr ? "" : value;
}

std::string for_shell(const std::string& word) {
  const bool is_plain = !word.empty() && word.find_first_not_of(
                                             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRST"
                                             "UVWXYZ0123456789-_./,:=+@") == std::string::npos;
  return is_plain ? word : "'" + replaced(word, "'", "'\\''") + "'";
}

}  // namespace

std::optional<std::filesystem::path> find_ncu() {
  std::vector<std::filesystem::path> folders;
  std::istringstream path(variable_or_nothing("PATH"));
  for (std::string folder; std::getline(path, folder, ':');) {
    folders.emplace_back(folder.empty() ? "." : folder);
  }
  if (const std::string home = variable_or_nothing("CUDA_HOME"); !home.empty()) {
    folders.push_back(std::filesystem::path(home) / "bin");
  }
  folders.emplace_back("/usr/local/cuda/bin");
  for (const std::filesystem::path& folder : folders) {
    const std::filesystem::path program = folder / "ncu";
    if (std::filesystem::is_regular_file(program) && ::access(program.c_str(), X_OK) == 0) {
      return absolute_path(program);
    }
  }
  return std::nullopt;
}

std::vector<std::string> ncu_arguments(const NcuRun& run) {
  return {"--log-file",
          run.log,
          "--csv",
          "--page",
          "raw",
          "--print-units",
          "base",
          "--print-kernel-base",
          "mangled",
          "--profile-from-start",
          "off",
          "--clock-control",
          "none",
          "--cache-control",
          run.warm_l2 ? "none" : "all",
          "--section",
          "WarpStateStats",
          "--metrics",
          join(ncu_metrics(), ","),
          executable_dir() / "cubind-worker",
          "launch",
          run.launch_file};
}

std::string ncu_command(const NcuRun& run) {
  std::string command = "ncu";
  for (const std::string& argument : ncu_arguments(run)) {
    command += " " + for_shell(argument);
  }
  return command;
}

void run_ncu(const std::filesystem::path& ncu, const NcuRun& run) {
  SubprocessOptions options;
  options.program = ncu;
  options.arguments = ncu_arguments(run);
  options.environment = own_environment_with({"LC_ALL=C"});  // the form of numbers
  Subprocess::spawn(options).wait();
}

}  // namespace cubind::ctl
