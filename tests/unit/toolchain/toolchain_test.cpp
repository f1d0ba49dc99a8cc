#include "tuner/toolchain/toolchain.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <map>

#include "base/error.hpp"
#include "base/file.hpp"
#include "tests/support/paths.hpp"

namespace cubind::test {
namespace fs = std::filesystem;

namespace {

// A machine of its own: a folder with installations, and the environment's variables.
class Machine {
 public:
  fs::path root() const { return folder_.path(); }

  void add_libraries(const fs::path& folder, const std::string& major, const std::string& version,
                     const std::string& content = "") {
    write(folder / ("libnvrtc.so." + major), "nvrtc " + version + content);
    write(folder / ("libnvrtc-builtins.so." + version), "builtins " + version + content);
    write(folder / ("libnvrtc.alt.so." + major), "alternative");
    write(folder / ("libnvrtc-builtins.alt.so." + version), "alternative");
  }

  void write(const fs::path& path, const std::string& content) {
    fs::create_directories((root() / path).parent_path());
    std::ofstream(root() / path) << content;
  }

  ToolchainsFound find() {
    search.environment = [this](const char* name) -> const char* {
      const auto found = variables.find(name);
      return found == variables.end() ? nullptr : found->second.c_str();
    };
    return find_toolchains(search, digests);
  }

  std::vector<std::string> names() {
    std::vector<std::string> result;
    for (const Toolchain& toolchain : find().toolchains) {
      result.push_back(toolchain.name());
    }
    return result;
  }

  std::map<std::string, std::string> variables;
  ToolchainSearch search;
  FileDigests digests;

 private:
  TempDir folder_;
};

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("several installations are offered newest first") {
  Machine machine;
  machine.add_libraries("old/lib64", "12", "12.9");
  machine.add_libraries("new/lib", "13", "13.0");
  machine.add_libraries("newest/targets/x86_64-linux/lib", "13", "13.2");
  machine.variables = {{"CUBIND_CUDA_HOME", machine.root() / "old"}, {"CUDA_HOME", machine.root() / "new"}};
  machine.search.toolkit_folders = {machine.root() / "newest"};
  CHECK(machine.names() == Names{"nvrtc 13.2", "nvrtc 13.0", "nvrtc 12.9"});
}

TEST_CASE("of two equal versions the place that is searched first comes first") {
  Machine machine;
  machine.add_libraries("a/lib", "13", "13.0", " a");
  machine.add_libraries("b/lib", "13", "13.0", " b");
  machine.variables = {{"CUDA_HOME", machine.root() / "a"}, {"CUBIND_CUDA_HOME", machine.root() / "b"}};
  const auto toolchains = machine.find().toolchains;
  REQUIRE(toolchains.size() == 2);
  CHECK(toolchains[0].found_in == "CUBIND_CUDA_HOME=" + (machine.root() / "b").string());
  CHECK(toolchains[0].nvrtc == machine.root() / "b/lib/libnvrtc.so.13");
  CHECK(toolchains[0].builtins == machine.root() / "b/lib/libnvrtc-builtins.so.13.0");
}

TEST_CASE("the wheels of CUDA 13 and CUDA 12 are found in site-packages with their headers") {
  Machine machine;
  machine.add_libraries("site/nvidia/cu13/lib", "13", "13.0");
  machine.write("site/nvidia/cu13/include/cuda_fp16.h", "13");
  machine.add_libraries("site/nvidia/cuda_nvrtc/lib", "12", "12.9");
  machine.write("site/nvidia/cuda_runtime/include/cuda_fp16.h", "12");
  machine.search.site_packages = {machine.root() / "site"};
  const auto toolchains = machine.find().toolchains;
  REQUIRE(toolchains.size() == 2);
  CHECK(toolchains[0].read_header("cuda_fp16.h") == "13");
  CHECK(toolchains[1].read_header("cuda_fp16.h") == "12");
  CHECK_FALSE(toolchains[1].read_header("cuda_bf16.h").has_value());
}

TEST_CASE("the folder that the package brings is searched last") {
  Machine machine;
  machine.add_libraries("package/cuda/lib", "13", "13.0");
  machine.search.install_folders = {machine.root() / "package/cuda"};
  CHECK(machine.names() == Names{"nvrtc 13.0"});
}

TEST_CASE("the same libraries in two places are one toolchain with the headers of either") {
  Machine machine;
  machine.add_libraries("bare/lib", "13", "13.0");
  machine.add_libraries("toolkit/lib64", "13", "13.0");
  machine.write("toolkit/include/cuda_fp16.h", "x");
  machine.search.toolkit_folders = {machine.root() / "bare", machine.root() / "toolkit"};
  const auto toolchains = machine.find().toolchains;
  REQUIRE(toolchains.size() == 1);
  CHECK(toolchains[0].read_header("cuda_fp16.h") == "x");
}

TEST_CASE("a library without its builtins and one older than 12 are passed over and named") {
  Machine machine;
  machine.write("half/lib64/libnvrtc.so.13", "x");
  machine.add_libraries("old/lib64", "11", "11.8");
  machine.variables = {{"CUDA_HOME", machine.root() / "half"}, {"CUBIND_CUDA_HOME", machine.root() / "old"}};
  const ToolchainsFound found = machine.find();
  CHECK(found.toolchains.empty());
  REQUIRE(found.tried.size() >= 2);
  CHECK_THAT(found.tried[1],
             Catch::Matchers::StartsWith("CUDA_HOME=" + (machine.root() / "half").string() + ": no "));
}

TEST_CASE("a fallback folder is looked into only where nothing else has an NVRTC") {
  Machine machine;
  machine.add_libraries("deps/cuda/lib", "13", "13.0");
  machine.add_libraries("toolkit/lib64", "12", "12.9");
  machine.search.fallback_folders = {machine.root() / "deps/cuda"};
  CHECK(machine.names() == Names{"nvrtc 13.0"});
  machine.search.toolkit_folders = {machine.root() / "toolkit"};
  CHECK(machine.names() == Names{"nvrtc 12.9"});
}

TEST_CASE("a program of a build folder falls back to what was unpacked into its checkout") {
  const ToolchainSearch search = ToolchainSearch::of_process();
  CHECK(search.fallback_folders == std::vector<fs::path>{source_dir() / ".deps" / "cuda"});
}

TEST_CASE("where nothing is found every place that was searched is named") {
  Machine machine;
  machine.write("site/other/file", "x");
  machine.search.toolkit_folders = {"/usr/local/no-cuda"};
  machine.search.site_packages = {machine.root() / "site"};
  const std::vector<std::string> tried = machine.find().tried;
  REQUIRE(tried.size() == 4);
  CHECK(tried[0] == "CUBIND_CUDA_HOME: not set");
  CHECK(tried[1] == "CUDA_HOME: not set");
  CHECK_THAT(tried[2], Catch::Matchers::StartsWith("/usr/local/no-cuda: no libnvrtc"));
  CHECK(tried[3] == (machine.root() / "site").string() + ": no Python wheel nvidia-cuda-nvrtc");
  machine.search.site_packages.clear();
  CHECK_THAT(machine.find().tried.back(), Catch::Matchers::StartsWith("Python wheels: no folder"));
}

TEST_CASE("links of a toolkit lead to one library and the newest minor version counts") {
  Machine machine;
  machine.write("t/lib64/libnvrtc.so.13.0.88", "nvrtc");
  machine.write("t/lib64/libnvrtc-builtins.so.13.0.88", "builtins");
  fs::create_symlink("libnvrtc.so.13.0.88", machine.root() / "t/lib64/libnvrtc.so.13");
  fs::create_symlink("libnvrtc-builtins.so.13.0.88", machine.root() / "t/lib64/libnvrtc-builtins.so.13.0");
  machine.search.toolkit_folders = {machine.root() / "t"};
  const auto toolchains = machine.find().toolchains;
  REQUIRE(toolchains.size() == 1);
  CHECK(toolchains[0].name() == "nvrtc 13.0");
  CHECK(toolchains[0].nvrtc == machine.root() / "t/lib64/libnvrtc.so.13.0.88");
}

TEST_CASE("a digest is that of the content and follows a change of the file") {
  Machine machine;
  machine.write("f", "one");
  CHECK(machine.digests.of(machine.root() / "f") == Digest::of("one"));
  machine.write("f", "other");
  CHECK(machine.digests.of(machine.root() / "f") == Digest::of("other"));
  CHECK_THROWS_AS(machine.digests.of(machine.root() / "none"), Error);
}

TEST_CASE("a digest is not computed twice for an unchanged file") {
  Machine machine;
  machine.write("f", "one");
  const auto time = fs::last_write_time(machine.root() / "f");
  const Digest first = machine.digests.of(machine.root() / "f");
  machine.write("f", "two");  // same inode and size; with the old time it passes for unchanged
  fs::last_write_time(machine.root() / "f", time);
  CHECK(machine.digests.of(machine.root() / "f") == first);
}

TEST_CASE("site-packages are found from the virtual environment and from python3 on PATH") {
  Machine machine;
  fs::create_directories(machine.root() / "venv/lib/python3.11/site-packages");
  fs::create_directories(machine.root() / "usr/lib/python3/dist-packages");
  machine.write("usr/bin/python3.11", "");
  fs::create_symlink("python3.11", machine.root() / "usr/bin/python3");
  machine.variables = {{"VIRTUAL_ENV", machine.root() / "venv"},
                       {"PATH", "/nowhere:" + (machine.root() / "usr/bin").string()}};
  machine.search.environment = [&](const char* name) -> const char* {
    const auto found = machine.variables.find(name);
    return found == machine.variables.end() ? nullptr : found->second.c_str();
  };
  CHECK(find_site_packages(machine.search.environment) ==
        std::vector<fs::path>{machine.root() / "venv/lib/python3.11/site-packages",
                              machine.root() / "usr/lib/python3/dist-packages"});
}

}  // namespace cubind::test
