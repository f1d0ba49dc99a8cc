#include "trust/serials.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "base/file.hpp"

namespace cubind {

TEST_CASE("an older serial than one that was accepted is refused") {
  const TempDir folder;
  const Serials serials(folder.path() / "serials");
  serials.accept("acme", 7, "F");
  CHECK_NOTHROW(serials.accept("acme", 7, "F"));
  CHECK_NOTHROW(serials.accept("acme", 9, "F"));
  CHECK_THROWS_WITH(Serials(folder.path() / "serials").accept("acme", 8, "F"),
                    Catch::StartsWith("F: has the serial 8 of acme, and 9 was accepted before"));
}

TEST_CASE("each issuer has its own serials") {
  const TempDir folder;
  const Serials serials(folder.path());
  serials.accept("acme", 7, "F");
  CHECK_NOTHROW(serials.accept("other", 1, "F"));
}

TEST_CASE("a damaged serial is refused and not taken for none") {
  const TempDir folder;
  write_file_atomic(folder.path() / "acme", "seven");
  CHECK_THROWS_WITH(Serials(folder.path()).accept("acme", 9, "F"),
                    Catch::Contains("is not the number of a bundle"));
}

TEST_CASE("an issuer is no path") {
  CHECK(is_issuer("acme-2.eu_west"));
  for (const char* const text : {"", ".", "..", "../acme", "a/b", ".lock", "a b"}) {
    CHECK(!is_issuer(text));
  }
  CHECK(!is_issuer(std::string(65, 'a')));
}

}  // namespace cubind
