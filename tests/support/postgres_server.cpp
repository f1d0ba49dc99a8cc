#include "tests/support/postgres_server.hpp"

#include <fcntl.h>
#include <pwd.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/digest.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "base/unique_fd.hpp"
#include "tests/support/other_users.hpp"

namespace cubind::test {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kStarts{60};

/// With its owner.
void copy_folder(const fs::path& from, const fs::path& to) {
  SubprocessOptions child;
  child.program = "/bin/cp";
  child.arguments = {"-a", from, to};
  if (const ExitStatus status = Subprocess::spawn(child).wait(); !status.success()) {
    throw Error(ErrorCode::Internal, to.string(), "cannot be copied: " + status.describe());
  }
}

/// The newest version's.
fs::path programs() {
  std::vector<fs::path> found;
  std::error_code none;
  for (const auto& version : fs::directory_iterator("/usr/lib/postgresql", none)) {
    if (fs::exists(version.path() / "bin/initdb")) {
      found.push_back(version.path() / "bin");
    }
  }
  if (found.empty()) {
    throw Error(ErrorCode::NotFound, "/usr/lib/postgresql", "holds no server: ./dev deps test installs it");
  }
  return *std::ranges::max_element(found);
}

}  // namespace

PostgresServer::PostgresServer() : folder_("cubind-pg") {
  if (const passwd* user = ::getuid() == 0 ? ::getpwnam("postgres") : nullptr) {
    if (::chown(folder_.path().c_str(), user->pw_uid, user->pw_gid) != 0) {
      throw Error(ErrorCode::Internal, folder_.path().string(), "cannot be given to the user postgres");
    }
  }
  make_cluster();
  start();
}

void PostgresServer::make_cluster() const {
  // Texts of the store sort by their bytes whatever the database's own order is.
  const std::vector<std::string> options{"-U",
                                         "cubind",
                                         "-A",
                                         "trust",
                                         "-E",
                                         "UTF8",
                                         "--no-sync",
                                         "--wal-segsize=1",
                                         "--locale=C.UTF-8",
                                         "--locale-provider=icu",
                                         "--icu-locale=en-US"};
  const fs::path data = folder_.path() / "data";
  const std::string digest = Digest::of(programs().string() + join(options, " ")).hex().substr(0, 8);
  const fs::path made = fs::read_symlink("/proc/self/exe").parent_path() / ("postgresql-" + digest);
  const UniqueFd lock(::open((made.string() + ".lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644));
  ::flock(lock.get(), LOCK_EX);
  if (fs::exists(made)) {
    copy_folder(made, data);
    return;
  }
  std::vector<std::string> arguments{"-D", data};
  arguments.insert(arguments.end(), options.begin(), options.end());
  run("initdb", std::move(arguments));
  const fs::path copy = made.string() + ".copy";
  fs::remove_all(copy);
  copy_folder(data, copy);
  fs::rename(copy, made);
}

PostgresServer::~PostgresServer() {
  if (server_) {
    stop();
  }
}

Subprocess PostgresServer::spawn(const std::string& program, std::vector<std::string> arguments) const {
  SubprocessOptions child;
  child.program = programs() / program;
  if (::getuid() == 0) {
    // Another user's process would outlive a test that crashes.
    std::vector<std::string> as_postgres{"--reuid",        "postgres",    "--regid", "postgres",
                                         "--clear-groups", "--pdeathsig", "INT"};
    // In some chroots root alone can enter "/".
    if (closed_to_others(folder_.path().parent_path())) {
      as_postgres.insert(as_postgres.end(), {"--inh-caps", "+dac_override", "--ambient-caps", "+dac_override",
                                             "--securebits", "+no_setuid_fixup"});
    }
    as_postgres.push_back(child.program);
    arguments.insert(arguments.begin(), as_postgres.begin(), as_postgres.end());
    child.program = "/usr/bin/setpriv";
  }
  child.arguments = std::move(arguments);
  child.environment = {"LC_ALL=C.UTF-8", "PATH=/usr/bin:/bin"};
  child.stderr_to = ChildStream::Null;
  child.working_folder = folder_.path();
  return Subprocess::spawn(child);
}

void PostgresServer::run(const std::string& program, std::vector<std::string> arguments) const {
  if (const ExitStatus status = spawn(program, std::move(arguments)).wait(); !status.success()) {
    throw Error(ErrorCode::Internal, program, status.describe());
  }
}

void PostgresServer::start() {
  server_ = spawn("postgres", {"-D", folder_.path() / "data", "-k", folder_.path(), "-c",
                               "listen_addresses=", "-c", "fsync=off"});
  wait_until_ready();
}

void PostgresServer::wait_until_ready() {
  const auto deadline = std::chrono::steady_clock::now() + kStarts;
  while (
      !spawn("pg_isready", {"-q", "-h", folder_.path(), "-U", "cubind", "-d", "postgres"}).wait().success()) {
    if (server_->try_wait() || std::chrono::steady_clock::now() > deadline) {
      throw Error(ErrorCode::Internal, "postgres", "does not start");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

void PostgresServer::stop() {
  server_->send_signal(SIGINT);  // "fast": sessions are ended
  server_->wait();
  server_.reset();
}

void PostgresServer::kill() {
  server_->kill_group();
  server_->wait();
  server_.reset();
}

std::string PostgresServer::url_of(const std::string& database) const {
  return "postgresql:///" + database + "?user=cubind&host=" + folder_.path().string();
}

std::string PostgresServer::create_database(const std::string& clauses) {
  const std::string name = "store" + std::to_string(++databases_);
  execute(url_of("postgres"), "CREATE DATABASE " + name + " " + clauses);
  return url_of(name);
}

void PostgresServer::execute(const std::string& url, const std::string& sql) {
  run("psql", {"-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", sql});
}

std::string PostgresServer::ask(const std::string& url, const std::string& sql) {
  const fs::path answer = folder_.path() / "answer";
  run("psql", {"-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1", "-d", url, "-o", answer, "-c", sql});
  const std::string text = read_file(answer);
  return text.substr(0, text.find('\n'));
}

}  // namespace cubind::test
