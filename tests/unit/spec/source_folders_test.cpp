#include "tuner/spec/source_folders.hpp"

#include <catch2/catch.hpp>

#include <unistd.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/refusal_of.hpp"
#include "tuner/spec/kernel_spec.hpp"
#include "tuner/spec/spec_folder.hpp"

namespace cubind::test {
namespace {

namespace fs = std::filesystem;

/// A folder of kernels, and a file of the host next to it.
struct Host {
  TempDir folder;
  fs::path kernels = folder.path() / "kernels";
  fs::path secret = folder.path() / "secret.h";
  Host() {
    create_folders(kernels);
    write_file_atomic(secret, "the secret");
    write_file_atomic(kernels / "mine.h", "mine");
  }
  std::optional<std::string> read(const fs::path& path) const {
    return SourceFolders({kernels}).read(path, 1000);
  }
};

/// Without root's right to read everything.
class Unprivileged {
 public:
  Unprivileged() : before_(::geteuid()) { REQUIRE((before_ != 0 || ::seteuid(65534) == 0)); }
  ~Unprivileged() { ::seteuid(before_); }

 private:
  uid_t before_;
};

TEST_CASE("a file outside of the folders is missing however it is reached") {
  Host host;
  CHECK(host.read(host.kernels / "mine.h") == "mine");
  CHECK_FALSE(host.read(host.secret));
  CHECK_FALSE(host.read(host.kernels / ".." / "secret.h"));
  fs::create_symlink(host.secret, host.kernels / "link.h");
  CHECK_FALSE(host.read(host.kernels / "link.h"));
  fs::create_directory_symlink(host.folder.path(), host.kernels / "up");
  CHECK_FALSE(host.read(host.kernels / "up" / "secret.h"));
  CHECK(host.read(host.kernels / "up" / "kernels" / "mine.h") == "mine");
  fs::create_symlink("/dev/zero", host.kernels / "device.h");
  CHECK_FALSE(host.read(host.kernels / "device.h"));
}

TEST_CASE("a folder that is a link holds what it leads to and a name that begins like it does not") {
  Host host;
  fs::create_directory_symlink(host.kernels, host.folder.path() / "link");
  CHECK(SourceFolders({host.folder.path() / "link"}).read(host.kernels / "mine.h", 1000) == "mine");
  create_folders(host.folder.path() / "kernels2");
  write_file_atomic(host.folder.path() / "kernels2" / "other.h", "other");
  CHECK_FALSE(host.read(host.folder.path() / "kernels2" / "other.h"));
}

TEST_CASE("a file that may not be read is absent and a limit is reported with the file") {
  Host host;
  fs::permissions(host.folder.path(), fs::perms(0755));
  fs::permissions(host.kernels / "mine.h", fs::perms::none);
  CHECK_THROWS_WITH(SourceFolders({host.kernels}).read(host.kernels / "mine.h", 3),
                    Catch::Contains("mine.h"));
  const Unprivileged user;
  CHECK_FALSE(host.read(host.kernels / "mine.h"));
}

TEST_CASE("what a link among the specs leads to is read only within the folder of its kernels") {
  Host host;
  fs::copy(source_dir() / "variants" / "vector_add", host.folder.path() / "outside");
  fs::create_symlink(host.folder.path() / "outside" / "vector_add.json", host.kernels / "a.json");
  fs::create_symlink(host.folder.path() / "nowhere.json", host.kernels / "b.json");
  fs::create_directory_symlink(host.folder.path() / "outside", host.kernels / "sub");
  std::map<fs::path, std::error_code> unlisted;
  const auto files = spec_files({host.kernels}, &unlisted);
  REQUIRE(files == std::vector<fs::path>{host.kernels / "a.json", host.kernels / "b.json"});
  CHECK(unlisted.contains(host.kernels / "sub"));
  std::vector<std::string> causes;
  for (const fs::path& file : files) {
    causes.push_back(
        error_of([&] { load_kernel_spec(file, {}, SourceFolders({host.kernels})); }).value().cause());
  }
  REQUIRE(causes.size() == 2);
  CHECK(causes[0] == causes[1]);
}

TEST_CASE("headers that lead out of the folder of the kernels are refused by their name alone") {
  Host host;
  fs::copy(source_dir() / "variants" / "vector_add", host.kernels / "vector_add");
  fs::copy(source_dir() / "variants" / "common", host.folder.path() / "common");
  const fs::path file = host.kernels / "vector_add" / "vector_add.json";
  std::string text = read_file(file);
  const auto at = text.find("\"../common\"");
  REQUIRE(at != std::string::npos);
  write_file_atomic(file, text.replace(at, 11, "\"../../common\""));
  const auto load = [&](const std::vector<fs::path>& folders) {
    load_kernel_spec(file, {}, SourceFolders(folders));
  };
  CHECK_THROWS_WITH(load({host.kernels}),
                    Catch::Contains("/headers/0: \"../../common\" leads out") &&
                        Catch::Contains("--headers " + (host.folder.path() / "common").string()));
  CHECK_NOTHROW(load({host.kernels, host.folder.path() / "common"}));
  fs::remove_all(host.folder.path() / "common");
  CHECK_THROWS_WITH(load({host.kernels}), Catch::Contains("/headers/0: \"../../common\" leads out"));
}

}  // namespace
}  // namespace cubind::test
