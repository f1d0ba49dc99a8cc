// A source of any bytes: it names its includes, or the line with a trigraph.
#include <cstdint>
#include <optional>
#include <string>

#include "tests/fuzz/refusal.hpp"
#include "tuner/includes/include_closure.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cubind;
  const std::string source(reinterpret_cast<const char*>(data), size);
  const auto own = [&](const std::string& path) -> std::optional<std::string> {
    if (path == "kernel.cu") {
      return source;
    }
    if (path == "inner/other.cuh") {
      return "#include \"../kernel.cu\"\n" + source;
    }
    return std::nullopt;
  };
  fuzz::refuse_or([&] {
    const IncludeClosure closure = include_closure("kernel.cu", {.own = own, .header_folders = {"inner"}});
    fuzz::require(closure.own_digests() ==
                  include_closure("kernel.cu", {.own = own, .header_folders = {"inner"}}).own_digests());
  });
  return 0;
}
