#include "server/config.hpp"

#include <CLI/CLI.hpp>

#include <charconv>
#include <cstdlib>
#include <sstream>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/version.hpp"
#include "tuner/spec/spec_folder.hpp"

namespace cubind {
namespace {

namespace fs = std::filesystem;

/// What goes to the agent as it is.
struct AgentArguments {
  std::string gpus, tune_when, memory_fraction, compile_jobs;
  std::vector<std::string> triton_pythons, replay;
};

struct DaemonArguments {
  std::string database, socket, listen, tables, agent_program, until_unlocked;
  std::vector<std::string> kernels, headers;
  bool no_shipped_tables = false;
  bool no_shipped_kernels = false;
  bool no_idle_verify = false;
  bool no_local_agent = false;
  AgentArguments agent;
};

void add_daemon_options(CLI::App& app, DaemonArguments& arguments, Config& config) {
  app.add_option("--db", arguments.database, "database file (default: $XDG_DATA_HOME/cubind/store.db)");
  app.add_option("--db-max-bytes", config.database_bytes,
                 "largest size of the database; at this size the service is read-only (default: no limit)")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--socket", arguments.socket, "Unix socket (default: $XDG_RUNTIME_DIR/cubind/cubind.sock)");
  app.add_option("--listen", arguments.listen, "TCP address host:port besides the socket; needs --insecure");
  app.add_flag("--insecure", config.insecure,
               "allow --listen without TLS and tokens: everyone who reaches the address may use it");
  app.add_option("--kernels", arguments.kernels,
                 "folder of kernel specs; may be repeated (also CUBIND_KERNEL_PATH)");
  app.add_option("--headers", arguments.headers,
                 "folder that the kernels' sources may also read; may be repeated");
  app.add_flag("--no-shipped-kernels", arguments.no_shipped_kernels,
               "leave out the specs that come with cubind");
  app.add_option("--tables", arguments.tables,
                 "folder of tables to import into a new store (default: the shipped ones)");
  app.add_flag("--no-shipped-tables", arguments.no_shipped_tables, "import no table into a new store");
  app.add_option("--cache-bytes", config.cache_bytes, "RAM for compressed cubins (default: 256 MiB)")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--no-idle-verify", arguments.no_idle_verify,
               "do not measure stale records again while no job needs the GPU");
  app.add_option("--until-unlocked", arguments.until_unlocked,
                 "end when no process holds a lock (flock) on this file any more");
  app.add_option("--log-level", config.log_level, "trace, debug, info, warn, error or off")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error", "off"}));
}

void add_agent_options(CLI::App& app, DaemonArguments& arguments) {
  app.add_flag("--no-local-agent", arguments.no_local_agent, "start no agent on this machine");
  app.add_option("--agent-program", arguments.agent_program,
                 "executable of the local agent (default: next to cubind)");
  app.add_option("--gpus", arguments.agent.gpus,
                 "GPUs that the local agent may use (default: CUDA_VISIBLE_DEVICES)");
  app.add_option("--tune-when", arguments.agent.tune_when, "idle (default), always or never")
      ->check(CLI::IsMember({"idle", "always", "never"}));
  app.add_option("--memory-fraction", arguments.agent.memory_fraction,
                 "share of the free GPU memory that trials may use");
  app.add_option("--compile-jobs", arguments.agent.compile_jobs, "compile workers (default: one per core)");
  app.add_option("--triton-python", arguments.agent.triton_pythons,
                 "Python that has Triton, which compiles Triton kernels; may be repeated")
      ->delimiter(':');
  app.add_option("--replay", arguments.agent.replay,
                 "play a table of recorded trials instead of measuring; may be repeated");
}

std::vector<std::string> pass_through(const AgentArguments& options) {
  std::vector<std::string> arguments;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) {
      arguments.emplace_back(name);
      arguments.push_back(value);
    }
  };
  add("--gpus", options.gpus);
  add("--tune-when", options.tune_when);
  add("--memory-fraction", options.memory_fraction);
  add("--compile-jobs", options.compile_jobs);
  for (const std::string& python : options.triton_pythons) {
    add("--triton-python", absolute_path(python).string());
  }
  for (const std::string& table : options.replay) {
    add("--replay", absolute_path(table).string());
  }
  return arguments;
}

void require_folders(const std::vector<fs::path>& folders, const std::string& option) {
  for (const fs::path& folder : folders) {
    if (!fs::is_directory(folder)) {
      throw Error(ErrorCode::InvalidArgument, option + folder.string(), "is not a folder");
    }
  }
}

std::vector<fs::path> kernel_folders(const DaemonArguments& arguments) {
  std::vector<fs::path> folders;
  if (const auto shipped = shipped_variants(); shipped && !arguments.no_shipped_kernels) {
    folders.push_back(*shipped);
  }
  for (const std::string& folder : arguments.kernels) {
    folders.push_back(absolute_path(folder));
  }
  if (const char* path = std::getenv("CUBIND_KERNEL_PATH")) {
    std::istringstream parts(path);
    for (std::string part; std::getline(parts, part, ':');) {
      if (!part.empty()) {
        folders.push_back(absolute_path(part));
      }
    }
  }
  require_folders(folders, "--kernels ");
  return folders;
}

std::vector<fs::path> header_folders(const DaemonArguments& arguments) {
  std::vector<fs::path> folders;
  for (const std::string& folder : arguments.headers) {
    folders.push_back(absolute_path(folder));
  }
  require_folders(folders, "--headers ");
  if (const auto shipped = shipped_variants()) {
    folders.push_back(*shipped);
  }
  return folders;
}

/// gRPC takes the port modulo 65536.
void check_listen(const std::string& listen) {
  if (listen.empty()) {
    return;
  }
  const std::string port = listen.substr(listen.rfind(':') + 1);
  unsigned number = 0;
  const auto [end, failed] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (listen.find(':') == std::string::npos || failed != std::errc() || end != port.data() + port.size() ||
      number > 65535) {
    throw Error(ErrorCode::InvalidArgument, "--listen " + listen,
                "is not host:port with a port from 0 to 65535, such as 127.0.0.1:7600");
  }
}

void complete(Config& config, const DaemonArguments& arguments) {
  if (!arguments.listen.empty() && !config.insecure) {
    throw Error(ErrorCode::InvalidArgument, "--listen " + arguments.listen,
                "TLS and tokens are not supported yet; --insecure lets in everyone who reaches the address");
  }
  check_listen(arguments.listen);
  config.listen = arguments.listen;
  config.database =
      arguments.database.empty() ? user_data_dir() / "store.db" : absolute_path(arguments.database);
  config.socket =
      arguments.socket.empty() ? user_runtime_dir() / "cubind.sock" : absolute_path(arguments.socket);
  config.kernels = kernel_folders(arguments);
  config.headers = header_folders(arguments);
  config.until_unlocked =
      arguments.until_unlocked.empty() ? fs::path() : absolute_path(arguments.until_unlocked);
  config.shipped_tables = !arguments.no_shipped_tables;
  if (!arguments.tables.empty()) {
    config.tables = absolute_path(arguments.tables);
  } else if (const auto shipped = shipped_variants()) {
    config.tables = *shipped / "tables";
  }
  if (arguments.no_idle_verify) {
    config.idle_verify.reset();
  }
  config.local_agent = !arguments.no_local_agent;
  config.agent_program = arguments.agent_program.empty() ? executable_dir() / "cubind-agent"
                                                         : absolute_path(arguments.agent_program);
  config.agent_arguments = pass_through(arguments.agent);
  config.agent_arguments.insert(config.agent_arguments.end(), {"--log-level", config.log_level});
}

}  // namespace

std::optional<Config> parse_command_line(int argc, const char* const* argv, int& exit_code) {
  CLI::App app("cubind: tunes CUDA kernels for the asked shapes and serves the winners");
  app.set_version_flag("--version", std::string("cubind ") + kVersion);
  Config config;
  DaemonArguments arguments;
  add_daemon_options(app, arguments, config);
  add_agent_options(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    exit_code = app.exit(error) == 0 ? 0 : 2;
    return std::nullopt;
  }
  complete(config, arguments);
  exit_code = 0;
  return config;
}

}  // namespace cubind
