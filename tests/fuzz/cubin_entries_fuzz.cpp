// Whatever the bytes are, a cubin is read without harm, and what is read of an entry can be launched.
#include <cstdint>
#include <string_view>

#include "tests/fuzz/refusal.hpp"
#include "tuner/spec/cubin_entries.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cubind;
  const std::string_view cubin(reinterpret_cast<const char*>(data), size);
  for (const auto& [symbol, entry] : read_cubin_entries(cubin)) {
    fuzz::require(!entry.cluster || (entry.cluster->x > 0 && entry.cluster->y > 0 && entry.cluster->z > 0));
    fuzz::require(!entry.parameter_bytes || entry.parameter_bytes->size() <= size);
    fuzz::require(!(entry.cluster && entry.wants_launch_clusters));
  }
  fuzz::require(read_cubin_variables(cubin).size() <= size);
  return 0;
}
