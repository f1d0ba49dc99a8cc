#include "tests/nvrtc/toolchains/toolchains.hpp"

#include <catch2/catch.hpp>
#include <map>

#include "tests/support/paths.hpp"
#include "tuner/includes/include_closure.hpp"

namespace cubind::test {
namespace {

std::vector<Toolchain> find() {
  FileDigests digests;
  ToolchainSearch search;
  if (const auto home = cuda_home()) {
    search.toolkit_folders.push_back(*home);
  }
  if (const auto home = cuda12_home()) {
    search.toolkit_folders.push_back(*home);
  }
  return find_toolchains(search, digests).toolchains;
}

}  // namespace

const std::vector<Toolchain>& toolchains() {
  static const std::vector<Toolchain> found = find();
  REQUIRE_FALSE(found.empty());
  return found;
}

const Toolchain* toolchain(unsigned major) {
  for (const Toolchain& candidate : toolchains()) {
    if (candidate.major == major) {
      return &candidate;
    }
  }
  return nullptr;
}

ToolkitHeaders& headers_of(const Toolchain& toolchain) {
  static std::map<std::string, ToolkitHeaders> known;
  return known
      .try_emplace(
          toolchain.nvrtc.string(), [&](const std::string& name) { return toolchain.read_header(name); },
          [&](const std::string& folder) { return toolchain.headers_below(folder); })
      .first->second;
}

v1::CompileRequest compile_request(std::string source, std::vector<std::string> entries) {
  v1::CompileRequest request;
  request.set_source_name("k.cu");
  request.set_source(std::move(source));
  request.set_architecture("sm_80");
  for (std::string& entry : entries) {
    request.add_entries(std::move(entry));
  }
  return request;
}

v1::CompileRequest compile_request_with_headers(std::string source, std::vector<std::string> entries,
                                                const Toolchain& toolchain) {
  IncludeSearch search;
  search.own = [&](const std::string& path) { return path == "k.cu" ? std::optional(source) : std::nullopt; };
  search.toolkit = &headers_of(toolchain);
  const IncludeClosure closure = include_closure("k.cu", search);
  v1::CompileRequest request = compile_request(closure.source.content, std::move(entries));
  for (const SharedFile& file : closure.toolkit) {
    v1::SourceFile& header = *request.add_headers();
    header.set_path(file->name);
    header.set_content(file->content);
  }
  return request;
}

}  // namespace cubind::test
