#include <catch2/catch.hpp>

#include <sys/stat.h>

#include <iostream>
#include <sstream>

#include "base/error.hpp"
#include "base/file.hpp"
#include "server/config.hpp"
#include "server/listener.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/refusal_of.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;

Config parsed(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "cubind");
  int exit_code = -1;
  const auto config = parse_command_line(static_cast<int>(arguments.size()), arguments.data(), exit_code);
  REQUIRE(config);
  return *config;
}

TEST_CASE("listening on TCP needs TLS and tokens or an explicit insecure") {
  CHECK_THROWS_WITH(parsed({"--listen", "127.0.0.1:7600"}), Contains("--insecure"));
  CHECK(parsed({"--listen", "127.0.0.1:7600", "--insecure"}).listen == "127.0.0.1:7600");
  CHECK(parsed({}).listen.empty());
}

TEST_CASE("the options of TLS and tokens are refused where one is missing") {
  const std::vector<const char*> tls{"--listen", "gpu7:7600", "--tls-cert", "/c.pem", "--tls-key", "/k.pem"};
  const auto with = [&](std::vector<const char*> more) {
    more.insert(more.begin(), tls.begin(), tls.end());
    return more;
  };
  CHECK(parsed(with({"--tokens", "/t.json"})).tls_certificate == "/c.pem");
  CHECK(parsed({"--listen", "gpu7:7600", "--insecure", "--tokens", "/t.json"}).tokens == "/t.json");
  CHECK_THROWS_WITH(parsed(tls), Contains("--tokens"));
  CHECK_THROWS_WITH(parsed(with({"--tokens", "/t.json", "--insecure"})), Contains("contradicts"));
  CHECK_THROWS_WITH(parsed({"--listen", "gpu7:7600", "--tls-cert", "/c.pem"}), Contains("go together"));
  CHECK_THROWS_WITH(parsed({"--listen", "gpu7:7600", "--insecure", "--tls-client-ca", "/ca.pem"}),
                    Contains("--tls-client-ca"));
  CHECK_THROWS_WITH(parsed({"--tokens", "/t.json"}), Contains("--listen"));
}

TEST_CASE("a store in PostgreSQL is a URL without a password and goes with no option of a file") {
  const char* url = "postgresql://cubind@db.example.org/cubind?passfile=/run/secrets/pgpass";
  const Config config = parsed({"--store", url});
  CHECK(config.store_url == url);
  CHECK(config.database != parsed({}).database);
  CHECK(parsed({}).store_url.empty());
  for (const char* with_password :
       {"postgresql://cubind:secret@host/db", "postgres://host/db?password=secret"}) {
    CHECK_THROWS_WITH(parsed({"--store", with_password}), Contains("PGPASSFILE") && !Contains("secret"));
  }
  CHECK_THROWS_WITH(parsed({"--store", "/data/store.db"}), Contains("postgresql://user@host/database"));
  CHECK_THROWS_WITH(parsed({"--db", url}), Contains("--store"));
  CHECK_THROWS_WITH(parsed({"--store", "postgresql://host/db?no_such_parameter=1"}), Contains("--store"));
  for (const std::vector<const char*>& of_file :
       {std::vector{"--db", "/x.db"}, {"--db-max-bytes", "1GiB"}, {"--fsck"}}) {
    std::vector<const char*> arguments{"--store", url};
    arguments.insert(arguments.end(), of_file.begin(), of_file.end());
    CHECK_THROWS_WITH(parsed(arguments), Contains("give one of them"));
  }
}

TEST_CASE("a store is copied to a file or to a database whose password is not in the URL") {
  const Config to_file = parsed({"--store", "postgresql://host/db", "--copy-store-to", "/x.db"});
  CHECK(to_file.copy_to == "/x.db");
  CHECK(to_file.copy_to_url.empty());
  const Config to_database = parsed({"--copy-store-to", "postgres://host/db"});
  CHECK(to_database.copy_to.empty());
  CHECK(to_database.copy_to_url == "postgres://host/db");
  CHECK_THROWS_WITH(parsed({"--copy-store-to", "postgresql://cubind:secret@host/db"}),
                    Contains("--copy-store-to") && Contains("PGPASSFILE") && !Contains("secret"));
}

TEST_CASE("options of the agent are passed through as they are") {
  const Config config =
      parsed({"--gpus", "0,1", "--tune-when", "always", "--compile-jobs", "3", "--memory-fraction", "0.5",
              "--log-level", "debug", "--triton-python", "/a/python:/b/python"});
  CHECK(config.agent_arguments == std::vector<std::string>{"--gpus", "0,1", "--tune-when", "always",
                                                           "--memory-fraction", "0.5", "--compile-jobs", "3",
                                                           "--triton-python", "/a/python", "--triton-python",
                                                           "/b/python", "--log-level", "debug"});
  CHECK_FALSE(parsed({"--no-local-agent"}).local_agent);
}

TEST_CASE("a table to play that cannot be read ends the daemon") {
  const Error error = error_of([&] { parsed({"--replay", "/no/such/table.json"}); }).value();
  CHECK(error.code() == ErrorCode::NotFound);
  CHECK_THAT(error.what(), Contains("/no/such/table.json"));
}

TEST_CASE("folders of specs come from the options and must exist") {
  TempDir folder;
  const std::string path = folder.path().string();
  CHECK(parsed({"--kernels", path.c_str()}).kernels.back() == folder.path());
  CHECK_THROWS_WITH(parsed({"--kernels", "/nowhere/at/all"}), Contains("is not a folder"));
}

TEST_CASE("folders of headers must exist and the shipped kernels are one of them") {
  TempDir folder;
  const std::string path = folder.path().string();
  const Config config = parsed({"--headers", path.c_str(), "--no-shipped-kernels"});
  REQUIRE(config.headers.size() == 2);
  CHECK(config.headers.front() == folder.path());
  CHECK(config.headers.back().filename() == "variants");
  CHECK_THROWS_WITH(parsed({"--headers", "/nowhere/at/all"}), Contains("--headers /nowhere/at/all"));
}

TEST_CASE("a wrong argument ends the process with 2 and help with 0") {
  int exit_code = -1;
  const char* wrong[] = {"cubind", "--tune-when", "sometimes"};
  CHECK_FALSE(parse_command_line(3, wrong, exit_code));
  CHECK(exit_code == 2);
  const char* version[] = {"cubind", "--version"};
  CHECK_FALSE(parse_command_line(2, version, exit_code));
  CHECK(exit_code == 0);
}

TEST_CASE("an unknown option is named with the one that was meant") {
  std::ostringstream said;
  std::streambuf* const out = std::cerr.rdbuf(said.rdbuf());
  int exit_code = -1;
  const char* wrong[] = {"cubind", "--bundel", "x"};
  CHECK_FALSE(parse_command_line(3, wrong, exit_code));
  std::cerr.rdbuf(out);
  CHECK(exit_code == 2);
  CHECK(said.str() ==
        "cubind: \"--bundel\" is not an option, did you mean \"--bundle\"?\n"
        "Run with --help for more information.\n");
}

std::string help_text() {
  std::ostringstream help;
  std::streambuf* const out = std::cout.rdbuf(help.rdbuf());
  int exit_code = -1;
  const char* asked[] = {"/opt/cubind/bin/cubind", "--help"};
  CHECK_FALSE(parse_command_line(2, asked, exit_code));
  std::cout.rdbuf(out);
  return help.str();
}

TEST_CASE("the help names the program without its folder") {
  CHECK_THAT(help_text(), Contains("Usage: cubind [OPTIONS]"));
}

TEST_CASE("the help says where the pages are that it names") {
  CHECK_THAT(help_text(), Contains("docs/many.md"));
  CHECK_THAT(help_text(), Contains("The pages are in " + (source_dir() / "docs").string()));
}

TEST_CASE("the daemon's page has a row for every option") {
  const std::string page = read_file(source_dir() / "docs" / "daemon.md"), text = help_text();
  std::size_t options = 0;
  for (std::size_t at = text.find("\n  --"); at != std::string::npos; at = text.find("\n  --", at + 1)) {
    const std::string option = text.substr(at + 3, text.find_first_of(" \n", at + 3) - at - 3);
    INFO(option);
    CHECK((option == "--version" || page.find("\n| `" + option) != std::string::npos));
    ++options;
  }
  CHECK(options > 20);
}

TEST_CASE("a socket file that a dead daemon left is removed and a living daemon is respected") {
  TempDir folder;
  const auto path = folder.path() / "run" / "cubind.sock";
  {
    const SocketFile socket(path);
    CHECK(socket.address() == "unix://" + path.string());
    CHECK_THROWS_WITH(SocketFile(path), Contains("another cubind"));
  }
  REQUIRE(::mknod(path.c_str(), S_IFSOCK | 0600, 0) == 0);  // left by a dead daemon
  CHECK_NOTHROW(SocketFile(path));
  CHECK((std::filesystem::status(path.parent_path()).permissions() & std::filesystem::perms::all) ==
        std::filesystem::perms::owner_all);
}

TEST_CASE("a socket path that is too long is refused with the limit") {
  CHECK_THROWS_WITH(SocketFile("/tmp/" + std::string(120, 'a')), Contains("107 bytes"));
}

TEST_CASE("a file that is no socket is left alone and refused as a socket's path") {
  TempDir folder;
  const auto path = folder.path() / "notes.txt";
  write_file_atomic(path, "mine");
  CHECK_THROWS_WITH(SocketFile(path), Contains("is not a socket"));
  CHECK(read_file(path) == "mine");
}

TEST_CASE("a folder that others can write to is no place for a socket unless it is sticky") {
  TempDir folder;
  const auto run = folder.path() / "run";
  create_folders(run, 0700);
  REQUIRE(::chmod(run.c_str(), 0777) == 0);
  CHECK_THROWS_WITH(SocketFile(run / "s"), Contains("chmod go-w"));
  REQUIRE(::chmod(run.c_str(), 01777) == 0);
  CHECK_NOTHROW(SocketFile(run / "s"));
}

TEST_CASE("a port above 65535 is refused and not taken modulo 65536") {
  CHECK_THROWS_WITH(parsed({"--listen", "127.0.0.1:99999", "--insecure"}), Contains("65535"));
  CHECK_THROWS_WITH(parsed({"--listen", "7600", "--insecure"}), Contains("host:port"));
  CHECK(parsed({"--listen", "[::1]:0", "--insecure"}).listen == "[::1]:0");
}

}  // namespace
}  // namespace cubind::test
