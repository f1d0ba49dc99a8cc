#include "trust/fingerprint.hpp"

#include <catch2/catch.hpp>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/text.hpp"

namespace cubind {
namespace {

Fingerprint sample() {
  Fingerprint print;
  print.name_space = "team; 100%";
  print.kernel = "scale";
  print.artifact = Digest::of("artifact");
  print.problem = "N=4096,K=2,T=f32";
  print.bucket = "N=2049..4096,K=2..2";
  print.device_class = Digest::of("device");
  print.policy = "cold/3,stream";
  print.toolchain = "nvrtc 13.0";
  print.architecture = "sm_90";
  print.configuration = "THREADS=128,VECTOR=4";
  print.numerics = "tolerance";
  print.launches = Digest::of("launches");
  print.cubin = Digest::of("cubin");
  print.cubin_bytes = 4711;
  print.evidence = "measured";
  print.issuer = "acme";
  print.serial = 7;
  print.expires = *parse_iso8601_utc("2027-03-01T00:00:00Z");
  return print;
}

}  // namespace

TEST_CASE("a fingerprint is read as it was printed") {
  CHECK(parse_fingerprint(print_fingerprint(sample()), "F") == sample());
}

TEST_CASE("a fingerprint is one line of 20 fields") {
  const std::string line = print_fingerprint(sample());
  CHECK_THAT(line, Catch::StartsWith("cubind/1;team%3B 100%25;scale;"));
  CHECK_THAT(line, Catch::EndsWith(";4711;measured;0;acme;7;2027-03-01T00:00:00.000Z"));
}

TEST_CASE("a line that is not printed so is refused") {
  const std::string line = print_fingerprint(sample());
  for (const std::string& wrong :
       {std::string(), line + ";", line.substr(0, line.rfind(';')), replaced(line, "cubind/1", "cubind/2"),
        replaced(line, ";7;", ";07;"), replaced(line, ";7;", ";-7;"), replaced(line, ";0;", ";2;"),
        replaced(line, ";acme;", ";../acme;"), replaced(line, "%3B", "%3b"), replaced(line, "%3B", "%3"),
        replaced(line, "scale", "sc\nale"), line + " "}) {
    CHECK_THROWS_WITH(parse_fingerprint(wrong, "F"),
                      Catch::StartsWith("F: is not a fingerprint of the format"));
  }
}

}  // namespace cubind
