#include "base/hex.hpp"

#include <catch2/catch.hpp>

namespace cubind {

TEST_CASE("bytes and their digits are inverse and either case is read") {
  const std::string bytes("\x00\x0a\x7f\xd4\xff", 5);
  CHECK(hex(bytes) == "000a7fd4ff");
  CHECK(bytes_from_hex(hex(bytes)) == bytes);
  CHECK(bytes_from_hex("D4fF") == std::string("\xd4\xff"));
  CHECK(bytes_from_hex("") == "");
}

TEST_CASE("what has another character or half a byte is not hexadecimal") {
  for (const char* text : {"0", "00f", "0g", "/0", "G0", " 00", "0x00"}) {
    CAPTURE(text);
    CHECK_FALSE(bytes_from_hex(text));
  }
}

}  // namespace cubind
