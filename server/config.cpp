#include "server/config.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <iostream>
#include <map>

#include "base/digest.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "base/loopback.hpp"
#include "base/number_option.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "server/config_sources.hpp"
#include "server/store/postgresql/store_url.hpp"
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
  std::string database, store, copy_to, bundle, trust, socket, socket_group, listen, metrics, web, tokens,
      tls_certificate, tls_key, tls_client_ca, audit_log, tables, agent_program, until_unlocked;
  std::vector<std::string> kernels, headers;
  std::string config_file;
  bool check_config = false;
  bool no_shipped_tables = false;
  bool no_shipped_kernels = false;
  bool no_idle_verify = false;
  bool no_local_agent = false;
  AgentArguments agent;
};

CLI::Validator within(NumberOption number) { return {std::move(number.read), std::move(number.range)}; }

void add_config_options(CLI::App& app, DaemonArguments& arguments, Config& config) {
  app.add_option("--config", arguments.config_file,
                 "file of settings, TOML with the names of these options (also CUBIND_CONFIG; default: "
                 "$XDG_CONFIG_HOME/cubind/cubind.toml)")
      ->envname("CUBIND_CONFIG");
  app.add_flag("--check-config", arguments.check_config,
               "print every setting and where it comes from, and end");
  app.add_flag("--fsck", config.fsck,
               "check the database, which no daemon may have open, and end with 0 (sound), 1 (damaged) or 2");
}

void add_daemon_options(CLI::App& app, DaemonArguments& arguments, Config& config) {
  app.add_option("--db", arguments.database, "database file (default: $XDG_DATA_HOME/cubind/store.db)");
  app.add_option("--store", arguments.store,
                 "postgresql://user@host/database that holds the store, in place of --db (see docs/many.md)");
  app.add_option(
      "--copy-store-to", arguments.copy_to,
      "copy the store to a new file or to an empty database of PostgreSQL (postgresql://...), print "
      "what was copied, and end");
  app.add_option("--db-max-bytes", config.database_bytes,
                 "largest size of the database; at this size the service is read-only (default: no limit)")
      ->transform(within(number_of_bytes()));
  app.add_option(
         "--artifact-bytes", config.artifact_bytes,
         "room for cubins in the store (default: 20GiB); those that no record needs and that were used "
         "longest ago make room; 0: no limit")
      ->transform(within(number_of_bytes()))
      ->default_str("20GiB");
  app.add_option("--bundle", arguments.bundle,
                 "serve this signed bundle and nothing else, read-only; --db names the place of its serials");
  app.add_option("--trust", arguments.trust,
                 "file of the keys that may sign the bundle (see docs/bundles.md)");
  app.add_option("--socket", arguments.socket, "Unix socket (default: $XDG_RUNTIME_DIR/cubind/cubind.sock)");
  app.add_option(
      "--socket-group", arguments.socket_group,
      "GROUP[:ROLE]: open a second socket to this group, cubind-GROUP.sock next to the first; its callers "
      "are one caller, a reader (default) or tuner");
  app.add_option(
      "--listen", arguments.listen,
      "TCP address host:port besides the socket; needs --tls-cert, --tls-key and --tokens, or --insecure");
  app.add_flag(
      "--insecure", config.insecure,
      "allow --listen without TLS; without --tokens too, everyone who reaches the address may use it");
  app.add_option("--tls-cert", arguments.tls_certificate,
                 "certificate of --listen (PEM), read again when it changes");
  app.add_option("--tls-key", arguments.tls_key, "its private key (PEM)");
  app.add_option("--tls-client-ca", arguments.tls_client_ca,
                 "CA (PEM) that must have signed a certificate of each client");
  app.add_option("--tokens", arguments.tokens,
                 "file of the tokens that callers of --listen need (see `cubindctl token`)");
  app.add_option("--audit-log", arguments.audit_log,
                 "append a JSON line to this file for each call that changes something or is refused");
  app.add_option("--metrics", arguments.metrics,
                 "[host:]port of a page for Prometheus, without TLS (default host: 127.0.0.1)");
  app.add_option("--web", arguments.web,
                 "[host:]port of pages for a browser, on this machine's loopback (default host: 127.0.0.1)");
  app.add_option("--kernels", arguments.kernels,
                 "folder of kernel specs; may be repeated (also CUBIND_KERNEL_PATH)");
  app.add_option("--headers", arguments.headers,
                 "folder that the kernels' sources may also read; may be repeated");
  app.add_flag("--no-shipped-kernels", arguments.no_shipped_kernels,
               "leave out the specs that come with cubind");
  app.add_option("--tables", arguments.tables,
                 "folder of tables to import into a new store (default: the shipped ones)");
  app.add_flag("--no-shipped-tables", arguments.no_shipped_tables, "import no table into a new store");
  app.add_option("--cache-bytes", config.cache_bytes, "RAM for compressed cubins (default: 256MiB)")
      ->transform(within(number_of_bytes()))
      ->default_str("256MiB");
  app.add_flag("--sealed", config.sealed,
               "questions start no compile and no tuning job, `cubindctl tune` does");
  app.add_flag("--no-idle-verify", arguments.no_idle_verify,
               "do not measure stale records again while no job needs the GPU");
  app.add_option("--until-unlocked", arguments.until_unlocked,
                 "end when no process holds a lock (flock) on this file any more");
  app.add_option("--log-format", config.log_format, "text (default) or json, a JSON object a line")
      ->default_str("text")
      ->check(CLI::IsMember({"text", "json"}));
  app.add_option("--log-level", config.log_level, "trace, debug, info (default), warn, error or off")
      ->default_str("info")
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
                 "share of the free GPU memory that trials may use")
      ->transform(within(share()));
  app.add_option("--compile-jobs", arguments.agent.compile_jobs, "compile workers (default: one per core)")
      ->transform(within(number_of_compile_jobs()));
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
    const fs::path path = absolute_path(table);
    static_cast<void>(read_file(path));  // a name that is wrong ends the daemon, not its agent
    add("--replay", path.string());
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
    for (const std::string& part : parts_of(path)) {
      folders.push_back(absolute_path(part));
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
void check_listen(const std::string& option, const std::string& listen) {
  if (listen.empty()) {
    return;
  }
  const std::string port = listen.substr(listen.rfind(':') + 1);
  unsigned number = 0;
  const auto [end, failed] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (listen.find(':') == std::string::npos || failed != std::errc() || end != port.data() + port.size() ||
      number > 65535) {
    throw Error(ErrorCode::InvalidArgument, option + " " + listen,
                "is not host:port with a port from 0 to 65535, such as 127.0.0.1:7600");
  }
}

std::string metrics_address(const std::string& given) {
  const bool is_port = !given.empty() && given.find(':') == std::string::npos;
  std::string address = is_port ? "127.0.0.1:" + given : given;
  check_listen("--metrics", address);
  if (address.find_first_of(", ") != std::string::npos) {
    throw Error(ErrorCode::InvalidArgument, "--metrics " + given, "names several addresses: give one");
  }
  return address;
}

fs::path path_or_none(const std::string& given) { return given.empty() ? fs::path() : absolute_path(given); }

/// What guards --listen.
void check_access(const DaemonArguments& arguments, bool insecure) {
  const auto refuse = [](const std::string& where, const std::string& cause) {
    throw Error(ErrorCode::InvalidArgument, where, cause);
  };
  const bool is_tls = !arguments.tls_certificate.empty();
  if (is_tls == arguments.tls_key.empty()) {
    refuse("--tls-cert, --tls-key", "go together: one of them is not given");
  }
  if (!arguments.tls_client_ca.empty() && !is_tls) {
    refuse("--tls-client-ca", "is for TLS: add --tls-cert and --tls-key");
  }
  if (arguments.listen.empty()) {
    if (is_tls || !arguments.tokens.empty()) {
      refuse(is_tls ? "--tls-cert" : "--tokens", "is for callers by TCP: add --listen HOST:PORT");
    }
    return;
  }
  if (is_tls && insecure) {
    refuse("--insecure", "contradicts --tls-cert");
  }
  if (!insecure && (!is_tls || arguments.tokens.empty())) {
    refuse("--listen " + arguments.listen,
           "needs --tls-cert, --tls-key and --tokens (see docs/team.md); --insecure lets in everyone who "
           "reaches "
           "the address");
  }
}

/// A bundle brings its own kernels and tables.
void check_bundle_options(const DaemonArguments& arguments, bool fsck) {
  const auto refuse = [](const std::string& where, const std::string& cause) {
    throw Error(ErrorCode::InvalidArgument, where, cause);
  };
  if (arguments.bundle.empty() != arguments.trust.empty()) {
    refuse("--bundle, --trust", "go together: one of them is not given");
  }
  if (!arguments.bundle.empty() &&
      (!arguments.kernels.empty() || !arguments.tables.empty() || !arguments.store.empty() || fsck)) {
    refuse("--bundle", "is served alone: leave out --kernels, --tables, --store, --fsck and --copy-store-to");
  }
}

/// Where the store lies. The path is of use with a URL too: what callers define lies in files next to it.
void locate_store(Config& config, const DaemonArguments& arguments) {
  if (arguments.database.find("://") != std::string::npos) {
    throw Error(ErrorCode::InvalidArgument, "--db " + arguments.database,
                "is a URL, not a file: give it to --store");
  }
  config.database =
      arguments.database.empty() ? user_data_dir() / "store.db" : absolute_path(arguments.database);
  if (arguments.store.empty()) {
    return;
  }
  check_store_url("--store", arguments.store);
  const bool is_of_file = !arguments.database.empty() || config.database_bytes > 0;
  if (is_of_file || config.fsck) {
    throw Error(
        ErrorCode::InvalidArgument, is_of_file ? "--db, --db-max-bytes" : "--fsck",
        "is for a store in a file of SQLite, and --store, CUBIND_STORE or the file of settings names a "
        "database of PostgreSQL: give one of them");
  }
  config.store_url = arguments.store;
  config.database = user_data_dir() / ("postgresql-" + Digest::of(arguments.store).hex().substr(0, 16));
}

void locate_copy(Config& config, const DaemonArguments& arguments) {
  if (is_store_url(arguments.copy_to)) {
    check_store_url("--copy-store-to", arguments.copy_to);
    config.copy_to_url = arguments.copy_to;
  } else {
    config.copy_to = path_or_none(arguments.copy_to);
  }
}

void complete(Config& config, const DaemonArguments& arguments) {
  check_bundle_options(arguments, config.fsck || !arguments.copy_to.empty());
  locate_copy(config, arguments);
  check_access(arguments, config.insecure);
  check_listen("--listen", arguments.listen);
  config.tls_certificate = path_or_none(arguments.tls_certificate);
  config.tls_key = path_or_none(arguments.tls_key);
  config.tls_client_ca = path_or_none(arguments.tls_client_ca);
  config.bundle = path_or_none(arguments.bundle);
  config.trust = path_or_none(arguments.trust);
  config.tokens = path_or_none(arguments.tokens);
  config.audit_log = path_or_none(arguments.audit_log);
  config.listen = arguments.listen;
  config.metrics = metrics_address(arguments.metrics);
  config.web = arguments.web.empty() ? "" : loopback_address("--web", arguments.web);
  config.web_program = executable_dir() / "cubind-web";
  locate_store(config, arguments);
  config.socket =
      arguments.socket.empty() ? user_runtime_dir() / "cubind.sock" : absolute_path(arguments.socket);
  if (!arguments.socket_group.empty()) {
    config.socket_group = parse_socket_group(arguments.socket_group);
  }
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

/// A daemon that other processes keep alive is theirs: the user's file is for the user's own daemon.
fs::path config_file(const DaemonArguments& arguments) {
  if (!arguments.config_file.empty()) {
    return absolute_path(arguments.config_file);
  }
  return arguments.until_unlocked.empty() ? default_config_file() : fs::path();
}

/// Defaults that depend on the machine are printed as they are here.
std::string printed_value(const Setting& setting, const Config& config) {
  const std::map<std::string, fs::path> here{{"db", config.database},
                                             {"socket", config.socket},
                                             {"tables", config.tables},
                                             {"agent-program", config.agent_program}};
  const auto found = here.find(setting.name);
  return setting.source == "default" && found != here.end() ? found->second.string() : setting.value;
}

void print(const std::vector<Setting>& settings, const Config& config) {
  for (const Setting& setting : settings) {
    const std::string value = printed_value(setting, config);
    std::cout << setting.name << " = " << (value.empty() ? "none" : value) << "  # " << setting.source
              << "\n";
  }
}

/// What is wrong with the words; of an unknown option, which one was meant.
std::string complaint(const CLI::App* app, const CLI::Error& error) {
  const std::vector<std::string> left = app->remaining();
  const auto unknown =
      std::ranges::find_if(left, [](const std::string& word) { return word.starts_with("--"); });
  std::string text = error.what();
  if (unknown != left.end() && dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    std::vector<std::string> names;
    for (const CLI::Option* option : app->get_options()) {
      names.push_back("--" + option->get_lnames().front());
    }
    const std::string name = unknown->substr(0, unknown->find('='));
    const auto nearest = nearest_word(name, names);
    text = quoted(name) + " is not an option" + (nearest ? ", did you mean " + quoted(*nearest) + "?" : "");
  }
  return "cubind: " + text + "\nRun with --help for more information.\n";
}

}  // namespace

std::optional<Config> parse_command_line(int argc, const char* const* argv, int& exit_code) {
  CLI::App app("cubind: tunes CUDA kernels for the asked shapes and serves the winners", "cubind");
  app.failure_message(complaint);
  app.set_version_flag("--version", std::string("cubind ") + kVersion);
  if (const auto variants = shipped_variants()) {
    app.footer("The pages are in " + (variants->parent_path() / "docs").string());
  }
  Config config;
  DaemonArguments arguments;
  add_config_options(app, arguments, config);
  add_daemon_options(app, arguments, config);
  add_agent_options(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    exit_code = app.exit(error) == 0 ? 0 : arguments.check_config ? 1 : 2;
    return std::nullopt;
  }
  const std::vector<Setting> settings = fill_open_options(app, config_file(arguments));
  complete(config, arguments);
  exit_code = 0;
  if (arguments.check_config) {
    print(settings, config);
    return std::nullopt;
  }
  return config;
}

}  // namespace cubind
