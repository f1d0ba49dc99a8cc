#include <catch2/catch.hpp>

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <sstream>

#include "base/error.hpp"
#include "base/file.hpp"
#include "tests/support/manual_clock.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/refusal_of.hpp"
#include "tests/unit/server/vector_add_library.hpp"

namespace cubind::test {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;

/// A folder with a copy of vector_add, and of the headers it includes.
struct LibraryFixture {
  TempDir folder;
  ManualClock clock;
  fs::path spec = folder.path() / "vector_add" / "vector_add.json";

  LibraryFixture() {
    for (const char* name : {"vector_add", "common"}) {
      fs::copy(source_dir() / "variants" / name, folder.path() / name);
    }
  }
  /// From now on the files have been written long ago.
  void settle() {
    clock.advance(std::chrono::system_clock::now() + std::chrono::hours(1) - clock.wall_now());
  }
  void replace(const std::string& what, const std::string& with) {
    std::string text = read_file(spec);
    text.replace(text.find(what), what.size(), with);
    write_file_atomic(spec, text);
  }
};

/// The same, which a library has read.
struct ReadLibrary : LibraryFixture {
  KernelLibrary library{{folder.path()}, clock};
  std::shared_ptr<const KernelEntry> before = library.find("vector_add");

  fs::path source() const { return spec.parent_path() / "vector_add.cu"; }
  std::shared_ptr<const KernelEntry> now() { return library.find("vector_add"); }
  bool is_revised() {
    library.reload();
    return now()->revision != before->revision;
  }
};

TEST_CASE("a changed spec is read again at most once a second and keeps what has not changed") {
  ReadLibrary f;
  f.replace("[1, 2, 4]", "[1, 2, 4, 8]");
  CHECK(f.now() == f.before);
  f.clock.advance(std::chrono::seconds(2));
  const auto after = f.now();
  CHECK(after->revision != f.before->revision);
  CHECK(after->spec->tunables.back().values.size() == 4);
  f.clock.advance(std::chrono::seconds(2));
  CHECK(f.now() == after);
}

TEST_CASE("a changed source makes another revision too") {
  ReadLibrary f;
  write_file_atomic(f.source(), read_file(f.source()) + "\n// changed\n");
  CHECK(f.is_revised());
}

TEST_CASE("a broken spec is listed with its error and does not disturb the others") {
  LibraryFixture f;
  write_file_atomic(f.folder.path() / "broken.json", R"({"name": "broken", "tunables": {"A": "x"}})");
  KernelLibrary library({f.folder.path()}, f.clock);
  CHECK(library.find("vector_add")->spec);
  CHECK_THROWS_WITH(library.find("broken"), Contains("broken.json"));
  const auto kernels = library.kernels();
  CHECK(kernels->size() == 2);
}

TEST_CASE("a broken spec that is repaired is taken up") {
  LibraryFixture f;
  f.replace("\"source\"", "\"sauce\"");
  KernelLibrary library({f.folder.path()}, f.clock);
  CHECK_THROWS_AS(library.find("vector_add"), Error);
  f.replace("\"sauce\"", "\"source\"");
  library.reload();
  CHECK(library.find("vector_add")->spec);
}

TEST_CASE(
    "at first the first of two specs with one name is in force and the other is listed with both files") {
  LibraryFixture f;
  VectorAddLibrary library(f.clock, f.folder.path());
  CHECK(library.find("vector_add")->file.starts_with((source_dir() / "variants").string()));
  const auto kernels = library.kernels();
  const auto duplicate =
      std::ranges::find_if(*kernels, [](const auto& entry) { return !entry->error.empty(); });
  REQUIRE(duplicate != kernels->end());
  CHECK_THAT((*duplicate)->error, Contains((source_dir() / "variants").string()));
  CHECK_THAT((*duplicate)->error, Contains(f.spec.string()));
}

/// vector_add in two folders; the first one comes when the second is in force.
struct SecondSpec : LibraryFixture {
  SecondSpec() {
    fs::rename(spec.parent_path(), later);
    library.reload();
    fs::create_directory(earlier);
    for (const auto& item : fs::directory_iterator(later)) {
      fs::copy(item.path(), earlier / item.path().filename());
    }
    library.reload();
  }
  std::string file() { return library.find("vector_add")->file; }
  std::string error() {
    for (const auto& entry : *library.kernels()) {
      if (!entry->error.empty()) {
        return entry->error;
      }
    }
    return "";
  }
  fs::path earlier = folder.path() / "a";
  fs::path later = folder.path() / "z";
  KernelLibrary library{{folder.path()}, clock};
};

TEST_CASE(
    "a spec that comes with an earlier path does not displace the one in force and both files are named") {
  SecondSpec f;
  const std::string second = (f.later / "vector_add.json").string();
  CHECK(f.file() == second);
  CHECK_THAT(f.error(), Contains((f.earlier / "vector_add.json").string() + " /name") && Contains(second));
}

/// What is logged while it lives.
class LogLines {
 public:
  LogLines() {
    const auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(lines_);
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", sink));
    spdlog::set_pattern("%v");
  }
  ~LogLines() { spdlog::set_default_logger(before_); }
  std::string text() const { return lines_.str(); }

 private:
  std::ostringstream lines_;
  std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
};

TEST_CASE("a changed spec is logged as in force when it is and a refused one never") {
  const bool is_in_force = GENERATE(true, false);
  SecondSpec f;
  f.spec = (is_in_force ? f.later : f.earlier) / "vector_add.json";
  f.replace("[1, 2, 4]", "[1, 2, 4, 8]");
  const LogLines log;
  f.library.reload();
  CHECK(log.text() == (is_in_force ? "kernels: " + f.spec.string() + " has changed and is in force\n" : ""));
}

TEST_CASE("a refused spec is logged as in force once its name is free") {
  SecondSpec f;
  fs::remove(f.later / "vector_add.json");
  const LogLines log;
  f.library.reload();
  CHECK(log.text() == "kernels: " + (f.earlier / "vector_add.json").string() + " is in force\n");
}

TEST_CASE("a refused spec that becomes broken is reported with both errors") {
  SecondSpec f;
  f.spec = f.earlier / "vector_add.json";
  f.replace("\"source\"", "\"sauce\"");
  const LogLines log;
  f.library.reload();
  CHECK_THAT(f.error(), Contains("sauce") && Contains("; and " + f.spec.string() + " /name"));
  CHECK(log.text() == "kernels: " + f.error() + "\n");
}

TEST_CASE("who is in force stays so while its file is broken") {
  SecondSpec f;
  write_file_atomic(f.later / "vector_add.json", "{");
  f.library.reload();
  CHECK(f.file() == (f.later / "vector_add.json").string());
}

TEST_CASE("a name is free for another spec once the file of who had it is gone or has another name") {
  const bool is_gone = GENERATE(true, false);
  SecondSpec f;
  if (is_gone) {
    fs::remove(f.later / "vector_add.json");
  } else {
    f.spec = f.later / "vector_add.json";
    f.replace("\"vector_add\"", "\"other_add\"");
  }
  f.library.reload();
  CHECK(f.file() == (f.earlier / "vector_add.json").string());
  CHECK(f.error().empty());
}

TEST_CASE("a daemon that is restarted puts the first of two specs in force") {
  SecondSpec f;
  KernelLibrary anew({f.folder.path()}, f.clock);
  CHECK(anew.find("vector_add")->file == (f.earlier / "vector_add.json").string());
}

TEST_CASE("a spec that several folders and links lead to is one kernel without an error") {
  LibraryFixture f;
  TempDir elsewhere;
  fs::create_directory_symlink(f.folder.path(), elsewhere.path() / "link");
  KernelLibrary library({f.folder.path(), f.folder.path(), f.spec.parent_path(), elsewhere.path() / "link"},
                        f.clock);
  const auto kernels = library.kernels();
  REQUIRE(kernels->size() == 1);
  CHECK(kernels->front()->error.empty());
  CHECK(kernels->front()->file == f.spec.string());
}

TEST_CASE("a spec reads its own folder of kernels and the shared ones and no other") {
  LibraryFixture f;
  TempDir elsewhere;
  create_folders(elsewhere.path() / "kernels");
  fs::copy(f.spec.parent_path(), elsewhere.path() / "kernels" / "vector_add", fs::copy_options::recursive);
  const auto reads_header = [&](std::vector<fs::path> folders, std::vector<fs::path> shared) {
    KernelLibrary library(std::move(folders), f.clock, std::move(shared));
    return library.find("vector_add")->spec->bundled_file("../common/vector_io.cuh") != nullptr;
  };
  const fs::path kernels = elsewhere.path() / "kernels";
  fs::create_directory_symlink(f.folder.path() / "common", kernels / "common");
  CHECK_FALSE(reads_header({kernels}, {}));
  CHECK_FALSE(reads_header({kernels, f.folder.path()}, {}));
  CHECK(reads_header({kernels}, {f.folder.path()}));
}

TEST_CASE("tables among the specs are no kernels and an unknown name gets a suggestion") {
  LibraryFixture f;
  write_file_atomic(f.folder.path() / "table.json", R"({"format": "cubind-table"})");
  KernelLibrary library({f.folder.path()}, f.clock);
  CHECK(library.kernels()->size() == 1);
  CHECK_THROWS_WITH(library.find("vector_ad"), Contains("vector_add"));
}

TEST_CASE("a spec that becomes broken keeps its last good version and tells the error of the file") {
  ReadLibrary f;
  f.replace("\"source\"", "\"sauce\"");
  f.library.reload();
  const auto now = f.now();
  CHECK(now->spec == f.before->spec);
  CHECK(now->revision == f.before->revision);
  CHECK_THAT(now->error, Contains("vector_add.json") && Contains("sauce"));
  f.replace("\"sauce\"", "\"source\"");
  f.library.reload();
  CHECK(f.now()->error.empty());
  CHECK(f.now()->revision == f.before->revision);
}

TEST_CASE("a source that goes keeps the last good version until it is back") {
  ReadLibrary f;
  fs::rename(f.source(), f.folder.path() / "away");
  f.library.reload();
  CHECK(f.now()->spec == f.before->spec);
  CHECK_THAT(f.now()->error, Contains("/source") && Contains("does not exist"));
  fs::rename(f.folder.path() / "away", f.source());
  f.library.reload();
  CHECK(f.now()->error.empty());
}

TEST_CASE("a changed header outside of the spec's folder makes another revision") {
  ReadLibrary f;
  const fs::path header = f.folder.path() / "common" / "vector_io.cuh";
  write_file_atomic(header, read_file(header) + "\n// changed\n");
  CHECK(f.is_revised());
  CHECK(f.before->spec->bundle.files != f.now()->spec->bundle.files);
}

TEST_CASE("files that are touched make no other revision") {
  LibraryFixture f;
  KernelLibrary library({f.folder.path()}, f.clock);
  const auto before = library.kernels();
  write_file_atomic(f.spec, read_file(f.spec));
  library.reload();
  CHECK(library.kernels() == before);
}

TEST_CASE("a change that leaves size and modification time of a settled file as they were is seen") {
  LibraryFixture f;
  f.settle();
  KernelLibrary library({f.folder.path()}, f.clock);
  const auto before = library.find("vector_add");
  const auto time = fs::last_write_time(f.spec);
  f.replace("[1, 2, 4]", "[1, 2, 8]");
  fs::last_write_time(f.spec, time);
  library.reload();
  CHECK(library.find("vector_add")->revision != before->revision);
}

TEST_CASE("another file of the same size and modification time in a source's place is seen") {
  LibraryFixture f;
  f.settle();
  KernelLibrary library({f.folder.path()}, f.clock);
  const auto before = library.find("vector_add");
  const fs::path source = f.spec.parent_path() / "vector_add.cu";
  std::string text = read_file(source);
  text.back() = ' ';
  const auto time = fs::last_write_time(source);
  write_file_atomic(source, text);
  fs::last_write_time(source, time);
  library.reload();
  CHECK(library.find("vector_add")->revision != before->revision);
}

TEST_CASE("a file in another file's place in the include order is taken up") {
  ReadLibrary f;
  const fs::path common = f.folder.path() / "common" / "vector_io.cuh";
  write_file_atomic(f.spec.parent_path() / "vector_io.cuh", read_file(common) + "\n// mine\n");
  CHECK(f.is_revised());
}

TEST_CASE("a spec that is removed is gone") {
  LibraryFixture f;
  KernelLibrary library({f.folder.path()}, f.clock);
  fs::remove(f.spec);
  library.reload();
  CHECK_THROWS_AS(library.find("vector_add"), Error);
}

/// Nothing can be opened while it lives.
class NoDescriptors {
 public:
  NoDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit none = before_;
    none.rlim_cur = 0;
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST_CASE("a folder that cannot be listed for a moment keeps the kernels that are known of it") {
  ReadLibrary f;
  std::size_t listed = 0;
  {
    const NoDescriptors none;
    f.library.reload();
    listed = f.library.kernels()->size();
  }
  CHECK(listed == 1);
  CHECK(f.now()->revision == f.before->revision);
}

TEST_CASE("a spec that could not be read for a moment is read again although nothing has touched it") {
  ReadLibrary f;
  f.replace("[1, 2, 4]", "[1, 2, 4, 8]");
  f.settle();
  {
    const NoDescriptors none;
    f.library.reload();
  }
  CHECK(f.is_revised());
}

TEST_CASE("a spec whose file name is not UTF-8 is left out of what goes over the wire") {
  LibraryFixture f;
  fs::copy_file(f.spec, f.folder.path() / "vector_add" / "\xff\xfe.json");
  const KernelLibrary::Entries kernels = *KernelLibrary({f.folder.path()}, f.clock).kernels();
  REQUIRE(kernels.size() == 1);
  CHECK(kernels.front()->file == f.spec.string());
}

TEST_CASE(
    "a checked spec that lies too deep or hidden in a folder of the library is refused as one it does not "
    "read") {
  LibraryFixture f;
  const KernelLibrary library({f.folder.path()}, f.clock);
  CHECK(library.judge(f.spec).empty());
  for (const char* name : {"a/deeper", "tables", ".draft"}) {
    fs::create_directories(f.folder.path() / name);
    fs::copy_file(f.spec, f.folder.path() / name / "k.json");
    CHECK_THROWS_WITH(
        library.judge(f.folder.path() / name / "k.json"),
        Contains("the daemon does not read it: of " + f.folder.path().string()) && Contains("not deeper"));
  }
}

TEST_CASE("a checked spec whose source is a link that leads out gets the library's own error") {
  LibraryFixture f;
  TempDir elsewhere;
  const fs::path source = f.spec.parent_path() / "vector_add.cu";
  fs::copy_file(source, elsewhere.path() / "out.cu");
  fs::remove(source);
  fs::create_symlink(elsewhere.path() / "out.cu", source);
  KernelLibrary library({f.folder.path()}, f.clock);
  CHECK_NOTHROW(load_kernel_spec(f.spec.string()));
  const std::string error = message_of([&] { library.judge(f.spec); });
  CHECK_THAT(error, Contains("vector_add.cu"));
  CHECK(library.kernels()->front()->error == error);
}

TEST_CASE("a checked spec that no folder of the library holds comes with what serves it") {
  LibraryFixture f;
  const KernelLibrary library({f.folder.path()}, f.clock);
  CHECK_THAT(library.judge("/drafts/k.json"), Contains("`cubind --kernels /drafts` serves it"));
}

}  // namespace
}  // namespace cubind::test
