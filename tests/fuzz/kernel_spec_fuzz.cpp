// A spec of any bytes with sources that exist: refused with file and JSON pointer, or usable.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "tests/fuzz/refusal.hpp"
#include "tuner/spec/kernel_spec.hpp"
#include "tuner/spec/keys.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cubind;
  SpecBundle bundle;
  bundle.file = "fuzz.json";
  bundle.spec_json.assign(reinterpret_cast<const char*>(data), size);
  for (const char* path : {"kernel.cu", "rmsnorm.cu", "rmsnorm_reference.cu", "reference.cu", "scale.cu"}) {
    bundle.files.push_back({path, "extern \"C\" __global__ void kernel() {}\n"});
  }
  std::ranges::sort(bundle.files, {}, &SourceFile::path);
  fuzz::refuse_or([&] {
    const auto spec = parse_kernel_spec(std::move(bundle));
    fuzz::require(!spec->name.empty() && !spec->arguments.empty() && !spec->launches.empty());
    fuzz::require(interface_digest(*spec) == interface_digest(*parse_kernel_spec(spec->bundle)));
  });
  return 0;
}
