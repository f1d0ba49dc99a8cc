// Settings from flags, the environment and a file.
#include <catch2/catch.hpp>

#include <cstdlib>
#include <iostream>
#include <sstream>

#include "base/error.hpp"
#include "base/file.hpp"
#include "server/config.hpp"
#include "server/config_sources.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;

/// A variable of the environment until its end.
class Variable {
 public:
  Variable(std::string name, const std::string& value) : name_(std::move(name)) {
    ::setenv(name_.c_str(), value.c_str(), 1);
  }
  ~Variable() { ::unsetenv(name_.c_str()); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const std::string name_;
};

std::optional<Config> config_of(std::vector<std::string> arguments) {
  std::vector<const char*> words{"cubind"};
  for (const std::string& argument : arguments) {
    words.push_back(argument.c_str());
  }
  int exit_code = -1;
  return parse_command_line(static_cast<int>(words.size()), words.data(), exit_code);
}

/// What --check-config prints.
std::string printed(std::vector<std::string> arguments) {
  arguments.emplace_back("--check-config");
  std::ostringstream text;
  std::streambuf* const out = std::cout.rdbuf(text.rdbuf());
  CHECK_FALSE(config_of(arguments));
  std::cout.rdbuf(out);
  return text.str();
}

struct ConfigFile {
  explicit ConfigFile(const std::string& text) { write_file_atomic(path, text); }
  TempDir folder;
  std::filesystem::path path = folder.path() / "cubind.toml";
  const Variable named{"CUBIND_CONFIG", path.string()};
};

TEST_CASE("a flag counts before the environment and that before the file and that before the default") {
  const ConfigFile file("log-level = \"debug\"\ncache-bytes = \"1MiB\"\nartifact-bytes = \"2GiB\"\n");
  const Variable level("CUBIND_LOG_LEVEL", "warn"), cache("CUBIND_CACHE_BYTES", "2MiB");
  const Config config = config_of({"--log-level", "error"}).value();
  CHECK(config.log_level == "error");
  CHECK(config.cache_bytes == 2U << 20);
  CHECK(config.artifact_bytes == std::uint64_t{2} << 30);
  CHECK(config.database_bytes == 0);
}

TEST_CASE("a file and the environment give lists and flags too") {
  const TempDir tables;
  const auto table_file = [&](const std::string& name) {
    write_file_atomic(tables.path() / name, "{}");
    return (tables.path() / name).string();
  };
  const std::string a = table_file("a.json"), b = table_file("b.json");
  const ConfigFile file("replay = [\"" + a + "\", \"" + b + "\"]\nno-local-agent = true\n");
  const Config by_file = config_of({}).value();
  CHECK(by_file.agent_arguments[1] == a);
  CHECK(by_file.agent_arguments[3] == b);
  CHECK_FALSE(by_file.local_agent);
  const Variable replay("CUBIND_REPLAY", b + ":" + a), agent("CUBIND_NO_LOCAL_AGENT", "0");
  const Config by_variable = config_of({}).value();
  CHECK(by_variable.agent_arguments[3] == a);
  CHECK(by_variable.local_agent);
}

TEST_CASE("a wrong key or value ends with the file or the variable and what would be right") {
  const auto [text, key, cause] = GENERATE(table<std::string, std::string, std::string>(
      {{"sokcet = \"/s\"", "cubind.toml sokcet", "socket"},
       {"[daemon]\nsocket = \"/s\"", "cubind.toml daemon.socket", "is not a setting"},
       {"log-level = \"loud\"", "cubind.toml log-level", "loud"},
       {"cache-bytes = \"many\"", "cubind.toml cache-bytes", "many"},
       {"socket = [\"/a\", \"/b\"]", "cubind.toml socket", "/a:/b"},
       {"socket = \"/a\"\nlog-level = \"warn\"\nsocket = \"/b\"", "cubind.toml line 3", "socket"},
       {"\nlog-level = warn", "cubind.toml line 2", "is not TOML"}}));
  const ConfigFile file(text);
  CHECK_THROWS_WITH(config_of({}), Contains(key) && Contains(cause));
}

TEST_CASE("a string of the file may hold a sign of comments and an array may have lines") {
  const TempDir tables;
  const std::string a = (tables.path() / "a.json").string(), b = (tables.path() / "b#2.json").string();
  write_file_atomic(a, "{}");
  write_file_atomic(b, "{}");
  const ConfigFile file("socket = \"/run/#1/s\"  # the first's \"socket\n" + std::string("replay = [\n  \"") +
                        a + "\",  # one\n  '" + b + "'\n]\n");
  const Config config = config_of({}).value();
  CHECK(config.socket == "/run/#1/s");
  CHECK(config.agent_arguments[1] == a);
  CHECK(config.agent_arguments[3] == b);
}

TEST_CASE("a string or an array of the file that has no end is refused with its line") {
  for (const std::string text :
       {"\nsocket = \"/s\nlog-level = \"warn\"\n", "\nsocket = '/s", "\nreplay = [\"/a\""}) {
    const ConfigFile file(text);
    CHECK_THROWS_WITH(config_of({}), Contains("cubind.toml line 2: is not TOML: ") && Contains("quotes"));
  }
}

TEST_CASE("strings of the file may have escapes and lines and its numbers marks between their digits") {
  const ConfigFile file(R"(
socket = "/run/a\"b\u0063"
db = """
/d/\
   store.db"""
cache-bytes = 1_048_576
memory-fraction = 0.3
compile-jobs = 3
)");
  const Config config = config_of({}).value();
  CHECK(config.socket == "/run/a\"bc");
  CHECK(config.database == "/d/store.db");
  CHECK(config.cache_bytes == 1U << 20);
  CHECK_THAT(printed({}), Contains("memory-fraction = 0.3  #") && Contains("compile-jobs = 3  #"));
}

TEST_CASE("a wrong variable is named") {
  const Variable level("CUBIND_TUNE_WHEN", "sometimes");
  CHECK_THROWS_WITH(config_of({}), Contains("CUBIND_TUNE_WHEN") && Contains("sometimes"));
}

TEST_CASE("checking the settings prints each with where it comes from") {
  const ConfigFile file("socket = \"/run/s\"\n");
  const Variable level("CUBIND_LOG_LEVEL", "warn");
  const std::string text = printed({"--db", "/d/store.db"});
  CHECK_THAT(text, Contains("db = /d/store.db  # flag\n"));
  CHECK_THAT(text, Contains("socket = /run/s  # " + file.path.string() + "\n"));
  CHECK_THAT(text, Contains("log-level = warn  # CUBIND_LOG_LEVEL\n"));
  CHECK_THAT(text, Contains("artifact-bytes = 20GiB  # default\n"));
  CHECK_THAT(text, Contains("insecure = false  # default\n"));
}

TEST_CASE("a daemon that ends with its users reads no file that is not named") {
  TempDir folder;
  create_folders(folder.path() / "cubind");
  write_file_atomic(folder.path() / "cubind" / "cubind.toml", "log-level = \"warn\"\n");
  const Variable home("XDG_CONFIG_HOME", folder.path().string());
  CHECK(config_of({}).value().log_level == "warn");
  CHECK(config_of({"--until-unlocked", "/f"}).value().log_level == "info");
}

TEST_CASE("a number out of its range ends a check of the settings with 1 wherever it stands") {
  const auto [name, value, range] = GENERATE(
      table<std::string, std::string, std::string>({{"db-max-bytes", "-1", "0 to 1EiB"},
                                                    {"cache-bytes", "99999999999999999999999", "0 to 1EiB"},
                                                    {"artifact-bytes", "2EiB", "0 to 1EiB"},
                                                    {"memory-fraction", "nan", "0.000001 to 1"},
                                                    {"compile-jobs", "x", "1 to 1024"},
                                                    {"compile-jobs", "0", "1 to 1024"}}));
  std::ostringstream said;
  std::streambuf* const out = std::cerr.rdbuf(said.rdbuf());
  const std::string flag = "--" + name;
  const char* words[] = {"cubind", flag.c_str(), value.c_str(), "--check-config"};
  int exit_code = -1;
  CHECK_FALSE(parse_command_line(4, words, exit_code));
  std::cerr.rdbuf(out);
  CHECK(exit_code == 1);
  CHECK_THAT(said.str(), Contains(flag) && Contains(value) && Contains(range));
  {
    const Variable variable(environment_name(name), value);
    CHECK_THROWS_WITH(config_of({}), Contains(environment_name(name)) && Contains(value) && Contains(range));
  }
  const ConfigFile file(name + " = \"" + value + "\"\n");
  CHECK_THROWS_WITH(config_of({}), Contains("cubind.toml " + name) && Contains(value) && Contains(range));
}

TEST_CASE("sizes have units") {
  CHECK(config_of({"--db-max-bytes", "3GiB"}).value().database_bytes == std::uint64_t{3} << 30);
  CHECK(config_of({"--db-max-bytes", "4096"}).value().database_bytes == 4096);
}

}  // namespace
}  // namespace cubind::test
