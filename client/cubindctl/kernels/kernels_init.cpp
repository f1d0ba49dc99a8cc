// cubindctl kernels init: a kernel to begin with; cubindctl kernels schema.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "base/unique_fd.hpp"
#include "client/cubindctl/commands.hpp"
#include "client/cubindctl/kernels/name_clash.hpp"
#include "client/cubindctl/skeleton/reference.hpp"
#include "client/cubindctl/skeleton/schema.hpp"
#include "client/cubindctl/skeleton/source.hpp"
#include "client/cubindctl/skeleton/spec.hpp"
#include "client/cubindctl/terminal/json_output.hpp"

namespace cubind::ctl {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPlaceholder = "your_kernel";
constexpr const char* kSchemaFile = "kernel_spec.schema";  // a daemon takes each .json for a spec
constexpr std::chrono::milliseconds kAnswersSoon{500};
constexpr std::size_t kMaxName = 64;  // as the schema of kernel specs says

struct NewFile {
  fs::path path;
  std::string text;
};

void check_name(const std::string& name) {
  const bool begins = !name.empty() && !(name.front() >= '0' && name.front() <= '9');
  const bool fits = std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
  if (!begins || !fits || name.size() > kMaxName) {
    throw Error(ErrorCode::InvalidArgument, "name",
                quoted(name) + " is not a kernel's name: letters, digits and _, no digit first, at most 64");
  }
}

std::string named(std::string_view skeleton, const std::string& name) {
  std::string text(skeleton);
  for (std::size_t at = 0; (at = text.find(kPlaceholder, at)) != std::string::npos; at += name.size()) {
    text.replace(at, kPlaceholder.size(), name);
  }
  return text;
}

// Fails if the file exists, also if another process has just made it.
void create(const NewFile& file) {
  UniqueFd fd(open(file.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd) {
    if (errno == EEXIST) {
      throw Error(ErrorCode::AlreadyExists, file.path.string(),
                  "exists already and is not overwritten: choose another name or --dir");
    }
    throw system_error(file.path.string(), "open", errno);
  }
  std::string_view rest = file.text;
  while (!rest.empty()) {
    const ssize_t written = write(fd.get(), rest.data(), rest.size());
    if (written < 0 && errno != EINTR) {
      throw system_error(file.path.string(), "write", errno);
    }
    rest.remove_prefix(written < 0 ? 0 : static_cast<std::size_t>(written));
  }
}

// All of them or none.
void create_all(const std::vector<NewFile>& files) {
  std::vector<fs::path> created;
  try {
    for (const NewFile& file : files) {
      create(file);
      created.push_back(file.path);
    }
  } catch (const Error&) {
    for (const fs::path& path : created) {
      std::error_code failed;
      fs::remove(path, failed);
    }
    throw;
  }
}

}  // namespace

ExitCode run(const InitOptions& options, const CommonOptions& common) {
  check_name(options.name);
  const Connection connection(resolve_address(common.address));  // no daemon need answer there
  const fs::path folder = fs::path(options.folder).lexically_normal();
  create_folders(folder);
  // The spec comes last: a daemon that watches the folder finds it with its sources.
  std::vector<NewFile> files = {
      {folder / (options.name + ".cu"), named(kSkeletonSource, options.name)},
      {folder / (options.name + "_reference.cu"), named(kSkeletonReference, options.name)},
      {folder / (options.name + ".json"), named(kSkeletonSpec, options.name)}};
  if (std::error_code failed; !fs::exists(folder / kSchemaFile, failed)) {
    files.insert(files.begin(), {folder / kSchemaFile, std::string(kKernelSpecSchema)});
  }
  create_all(files);
  const std::string clash = name_clash(connection, options.name, files.back().path, kAnswersSoon);
  if (common.json) {
    OutputJson paths = OutputJson::array();
    for (const NewFile& file : files) {
      paths.push_back(file.path.string());
    }
    OutputJson document{{"kernel", options.name}, {"files", paths}};
    if (!clash.empty()) {
      document["warnings"] = {clash};
    }
    print_json(document);
    return ExitCode::Ok;
  }
  for (const NewFile& file : files) {
    std::cout << "wrote " << file.path.string() << "\n";
  }
  if (!clash.empty()) {
    std::cout << "warning: " << clash << "\n";
  }
  const std::string problem = " --problem N=1048576,T=f32\n";
  std::cout << "Serve it with   cubind --kernels " << folder.string()
            << " &   (a daemon with this folder finds it by itself)\n"
            << "Check it with   cubindctl kernels check " << files.back().path.string() << problem
            << "Tune it with    cubindctl tune " << options.name << problem;
  return ExitCode::Ok;
}

ExitCode run(const SchemaOptions&, const CommonOptions&) {
  std::cout << kKernelSpecSchema;
  return ExitCode::Ok;
}

}  // namespace cubind::ctl
