#include "base/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <optional>

#include "base/error.hpp"
#include "tests/support/refusal_of.hpp"

namespace cubind {
namespace {

using test::error_of;

namespace fs = std::filesystem;

// Sets a variable for the length of a test.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) {
      before_ = before;
    }
    value == nullptr ? ::unsetenv(name) : ::setenv(name, value, 1);
  }
  ~Environment() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

std::size_t entries(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

}  // namespace

TEST_CASE("what was written is read back byte for byte") {
  const TempDir folder;
  const std::string content("a\0b\n\xff", 5);
  write_file_atomic(folder.path() / "f", content);
  CHECK(read_file(folder.path() / "f") == content);
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("a file is replaced and its mode is the one asked for") {
  const TempDir folder;
  const fs::path file = folder.path() / "f";
  write_file_atomic(file, std::string(100000, 'x'));
  write_file_atomic(file, "short", 0600);
  CHECK(read_file(file) == "short");
  struct stat info {};
  CHECK(::stat(file.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
}

TEST_CASE("a write that cannot replace its target leaves nothing behind") {
  const TempDir folder;
  fs::create_directory(folder.path() / "taken");
  CHECK(error_of([&] { write_file_atomic(folder.path() / "taken", "x"); }));
  CHECK(entries(folder.path()) == 1);
  const auto missing = error_of([&] { write_file_atomic(folder.path() / "none" / "f", "x"); });
  REQUIRE(missing);
  CHECK(missing->code() == ErrorCode::NotFound);
  CHECK(missing->where() == (folder.path() / "none" / "f").string());
}

TEST_CASE("an unreadable file is reported with its path and the reason of the system") {
  const auto error = error_of([] { read_file("/nonexistent/x"); });
  REQUIRE(error);
  CHECK(error->code() == ErrorCode::NotFound);
  CHECK(std::string(error->what()) == "/nonexistent/x: cannot open: No such file or directory");
}

TEST_CASE("folders devices and pipes are no files") {
  const TempDir folder;
  ::mkfifo((folder.path() / "pipe").c_str(), 0600);
  CHECK(error_of([&] { read_file(folder.path()); })->cause() == "is a folder");
  CHECK(error_of([&] { read_file(folder.path() / "pipe"); })->cause() == "is not a file");
  CHECK(error_of([] { read_file("/dev/zero"); })->code() == ErrorCode::InvalidArgument);
}

TEST_CASE("a file above the limit is refused and one at the limit is read") {
  const TempDir folder;
  write_file_atomic(folder.path() / "f", "12345");
  CHECK(read_file(folder.path() / "f", 5) == "12345");
  CHECK(error_of([&] { read_file(folder.path() / "f", 4); })->code() == ErrorCode::ResourceExhausted);
}

TEST_CASE("files that promise no size are read whole") {
  CHECK(read_file("/proc/self/status").starts_with("Name:"));
  CHECK(error_of([] { read_file("/proc/self/status", 10); })->code() == ErrorCode::ResourceExhausted);
}

TEST_CASE("a temporary folder is private and goes with its object") {
  fs::path path;
  {
    TempDir first("cubind-test");
    path = first.path();
    fs::create_directories(path / "a" / "b");
    const TempDir second = std::move(first);
    CHECK(second.path() == path);
    CHECK(fs::status(path).permissions() == fs::perms::owner_all);
  }
  CHECK_FALSE(fs::exists(path));
}

TEST_CASE("paths are made absolute without touching the disk") {
  CHECK(absolute_path("/a/./b/../c") == "/a/c");
  CHECK(absolute_path("/a/b/") == "/a/b");
  CHECK(absolute_path("/") == "/");
  CHECK(absolute_path("x") == fs::current_path() / "x");
  CHECK(error_of([] { canonical_path("/nonexistent/x"); })->code() == ErrorCode::NotFound);
}

TEST_CASE("folders are created once and never over a file") {
  const TempDir folder;
  const fs::path deep = folder.path() / "a" / "b";
  create_folders(deep, 0700);
  create_folders(deep, 0700);
  CHECK(fs::status(deep).permissions() == fs::perms::owner_all);
  write_file_atomic(folder.path() / "f", "");
  CHECK(error_of([&] { create_folders(folder.path() / "f"); })->code() == ErrorCode::AlreadyExists);
  CHECK(error_of([&] { create_folders(folder.path() / "f" / "g"); }));
}

TEST_CASE("the runtime folder follows XDG and has a fallback for each user") {
  {
    const Environment runtime("XDG_RUNTIME_DIR", "/run/user/7");
    CHECK(user_runtime_dir() == "/run/user/7/cubind");
  }
  const std::string fallback = "/tmp/cubind-" + std::to_string(::getuid());
  {
    const Environment runtime("XDG_RUNTIME_DIR", "relative");
    CHECK(user_runtime_dir() == fallback);
  }
  const Environment runtime("XDG_RUNTIME_DIR", nullptr);
  CHECK(user_runtime_dir() == fallback);
}

TEST_CASE("the data folder follows XDG then the home and is an error without either") {
  const Environment home("HOME", "/home/x");
  {
    const Environment data("XDG_DATA_HOME", "/data");
    CHECK(user_data_dir() == "/data/cubind");
  }
  const Environment data("XDG_DATA_HOME", nullptr);
  CHECK(user_data_dir() == "/home/x/.local/share/cubind");
  const Environment no_home("HOME", nullptr);
  CHECK(error_of([] { user_data_dir(); })->code() == ErrorCode::FailedPrecondition);
}

TEST_CASE("the folder of the executable holds the executable") {
  CHECK(fs::exists(executable_dir() / "unit_base"));
}

TEST_CASE("a build folder lies in a checkout and a package does not even within one") {
  const TempDir folder;
  const fs::path checkout = folder.path();
  const fs::path package = checkout / "dist" / "cubind-1.0";
  for (const fs::path& root : {checkout, package}) {
    create_folders(root / "schemas");
    write_file_atomic(root / "schemas" / "cubind.proto", "");
  }
  write_file_atomic(checkout / "CMakeLists.txt", "");
  CHECK(source_tree_around(checkout / "build" / "dev" / "bin") == checkout);
  CHECK_FALSE(source_tree_around(package / "bin"));
  CHECK_FALSE(source_tree_around(checkout.parent_path()));
}

TEST_CASE("output goes through a link and an existing file keeps its mode") {
  const TempDir folder;
  const fs::path file = folder.path() / "f";
  write_file_atomic(file, "old", 0600);
  fs::create_symlink("f", folder.path() / "link");
  write_output(folder.path() / "link", "new");
  CHECK(fs::is_symlink(folder.path() / "link"));
  CHECK(read_file(file) == "new");
  CHECK(fs::status(file).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
}

TEST_CASE("output to a pipe is written into it and the pipe stays one") {
  const TempDir folder;
  const fs::path pipe = folder.path() / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const UniqueFd reader(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  write_output(pipe, "bytes");
  char got[8] = {};
  CHECK(::read(reader.get(), got, sizeof(got)) == 5);
  CHECK(fs::is_fifo(pipe));
}

TEST_CASE("output to a folder is refused and output to a link without a target makes the target") {
  const TempDir folder;
  CHECK(error_of([&] { write_output(folder.path(), "x"); })->code() == ErrorCode::InvalidArgument);
  fs::create_symlink("target", folder.path() / "link");
  write_output(folder.path() / "link", "x");
  CHECK(read_file(folder.path() / "target") == "x");
}

}  // namespace cubind
