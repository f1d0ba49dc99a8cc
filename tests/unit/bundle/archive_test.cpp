#include "bundle/archive.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"

namespace cubind {
namespace {

/// The archive, with another type of its only member. The checksum counts bytes.
std::string with_type(std::string archive, char type) {
  constexpr std::size_t kType = 156, kChecksum = 148;
  const int sum = std::stoi(archive.substr(kChecksum, 7), nullptr, 8) + type - archive[kType];
  archive[kType] = type;
  std::string digits(7, '0');
  for (int left = sum, i = 6; i >= 0; --i, left /= 8) {
    digits[static_cast<std::size_t>(i)] = static_cast<char>('0' + left % 8);
  }
  return archive.replace(kChecksum, 7, digits);
}

std::string without_end(const std::string& archive) { return archive.substr(0, archive.size() - 1024); }

}  // namespace

TEST_CASE("members are read as they were written") {
  const Members members{{"a/b.json", "text"}, {"empty", ""}, {"z", std::string(100'000, 'z')}};
  CHECK(read_tar(write_tar(members), "F") == members);
}

TEST_CASE("a long path is split at a slash and one that cannot be is refused") {
  const Members members{{std::string(150, 'a') + "/" + std::string(100, 'b'), "text"}};
  CHECK(read_tar(write_tar(members), "F") == members);
  CHECK_THROWS_WITH(write_tar({{std::string(101, 'a'), ""}}), Catch::Contains("is too long a path"));
  CHECK_THROWS_WITH(write_tar({{std::string(156, 'a') + "/b" + std::string(99, 'b'), ""}}),
                    Catch::Contains("is too long a path"));
}

TEST_CASE("folders of an archive are left out") {
  const std::string folder = with_type(write_tar({{"a/", ""}}), '5');
  CHECK(read_tar(without_end(folder) + write_tar({{"a/b", ""}}), "F") == Members{{"a/b", ""}});
}

TEST_CASE("a path that leads out of an archive is refused") {
  for (const char* const path : {"../a", "/a", "a/../../b", "a/../b", "./a", "a//b", "."}) {
    CHECK_THROWS_WITH(read_tar(write_tar({{path, ""}}), "F"),
                      Catch::Contains("is not a path below the archive"));
  }
}

TEST_CASE("links and devices in an archive are refused") {
  for (const char type : {'1', '2', '3', '4', '6', 'L'}) {
    CHECK_THROWS_WITH(read_tar(with_type(write_tar({{"a", ""}}), type), "F"),
                      Catch::Contains("\"a\": is a link or a device"));
  }
}

TEST_CASE("dates of a pax header are passed over and another name is refused") {
  const auto after = [](const std::string& words) {
    return without_end(with_type(write_tar({{"PaxHeaders/a", words}}), 'x')) + write_tar({{"a", "text"}});
  };
  CHECK(read_tar(after("20 mtime=1700000000\n"), "F") == Members{{"a", "text"}});
  CHECK_THROWS_WITH(read_tar(after("16 path=../../b\n"), "F"), Catch::Contains("is a pax header with path="));
  CHECK_THROWS_WITH(read_tar(after("20 mtime=1700000000\n13 size=1000\n"), "F"), Catch::Contains("size="));
}

TEST_CASE("a member that is there twice is refused") {
  const std::string one = write_tar({{"a", ""}});
  CHECK_THROWS_WITH(read_tar(without_end(one) + one, "F"), "F \"a\": is there twice");
}

TEST_CASE("an archive that is cut off, goes on behind its end or has a damaged header is refused") {
  const std::string whole = write_tar({{"a", "text"}, {"b", std::string(1000, 'b')}});
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{100}, std::size_t{512}, std::size_t{700}, whole.size() - 1,
        whole.size() - 512, whole.size() - 1024, whole.size() - 1500}) {
    CHECK_THROWS_WITH(read_tar(whole.substr(0, size), "F"), Catch::Contains("is not a whole tar archive"));
  }
  CHECK_THROWS_WITH(read_tar(whole + whole, "F"), Catch::Contains("bytes follow its end"));
  for (const std::size_t byte : {std::size_t{0}, std::size_t{130}, std::size_t{150}, std::size_t{400}}) {
    std::string damaged = whole;
    damaged[byte] ^= 1;
    CHECK_THROWS_WITH(read_tar(damaged, "F"), Catch::Contains("is damaged"));
  }
}

TEST_CASE("an archive above a limit is refused") {
  const std::string bytes = write_tar({{"a", std::string(1000, 'a')}, {"b", std::string(1000, 'b')}});
  CHECK_NOTHROW(read_tar(bytes, "F", {.bytes = 2000, .members = 2}));
  CHECK_THROWS_WITH(read_tar(bytes, "F", {.bytes = 1999}), "F: has more than 1999 bytes");
  CHECK_THROWS_WITH(read_tar(bytes, "F", {.members = 1}), "F: has more than 1 members");
}

}  // namespace cubind
