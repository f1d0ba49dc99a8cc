// A table of any bytes: refused with file and JSON pointer, or the canonical text is read back as the same
// table.
#include <cstdint>
#include <string>
#include <string_view>

#include "tests/fuzz/refusal.hpp"
#include "tuner/table/table.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cubind;
  fuzz::refuse_or([&] {
    const std::string printed =
        print_table(read_table({reinterpret_cast<const char*>(data), size}, "fuzz.json"));
    fuzz::require(print_table(read_table(printed, "printed.json")) == printed);
  });
  return 0;
}
