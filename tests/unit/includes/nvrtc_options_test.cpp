#include "tuner/includes/nvrtc_options.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"

namespace cubind::test {
using Catch::Matchers::Contains;
using Options = std::vector<std::string>;

TEST_CASE("an option has one spelling") {
  CHECK(canonical_nvrtc_option("-lineinfo", "") == "--generate-line-info");
  CHECK(canonical_nvrtc_option("--generate-line-info", "") == "--generate-line-info");
  CHECK(canonical_nvrtc_option("-std=c++20", "") == "--std=c++20");
  CHECK(canonical_nvrtc_option("-Xptxas=-dlcm=cg", "") == "--ptxas-options=-dlcm=cg");
  CHECK(canonical_nvrtc_option("-Xptxas=--register-usage-level=10", "") ==
        "--ptxas-options=--register-usage-level=10");
  CHECK_THROWS_WITH(canonical_nvrtc_option("-Xptxas=--register-usage-level=11", ""), Contains("0..10"));
}

TEST_CASE("nvcc's option for constexpr functions is NVRTC's, which brings nvcc's macro") {
  const Options options =
      canonical_nvrtc_options({"--expt-relaxed-constexpr", "-default-device"}, "/options");
  CHECK(options == Options{"--device-as-default-execution-space"});
  CHECK(nvcc_defines(options) == Options{"__CUDACC_RELAXED_CONSTEXPR__=1"});
  CHECK(nvcc_defines({"--fmad=true"}).empty());
}

TEST_CASE("the order of options does not count and a repeated one stands once") {
  const Options options =
      canonical_nvrtc_options({"-use_fast_math", "--fmad=true", "--use_fast_math"}, "/options");
  CHECK(options == Options{"--fmad=true", "--use_fast_math"});
  CHECK(canonical_nvrtc_options({"--fmad=true", "--use_fast_math"}, "/options") == options);
}

TEST_CASE("an option outside the list is refused by name with what is allowed") {
  for (const char* option : {"--include-path=/etc",
                             "-I/etc",
                             "-I",
                             "--pre-include=/etc/passwd",
                             "-include=/etc/passwd",
                             "--time=/tmp/x",
                             "-G",
                             "--dlink-time-opt",
                             "-dlto",
                             "--device-c",
                             "--relocatable-device-code=true",
                             "--gpu-architecture=sm_90",
                             "-arch=sm_90",
                             "-DX=1",
                             "--define-macro=X",
                             "--pch",
                             "--create-pch=/tmp/x",
                             "--fdevice-time-trace=/tmp/x",
                             "--ptxas-options=-v -O1",
                             "--ptxas-options=--input-as-string",
                             "--std=c++03",
                             "--maxrregcount=1000",
                             "--fmad=TRUE",
                             "--fmad",
                             "--use_fast_math=1",
                             "--restrict ",
                             "",
                             "--split-compile=0",
                             "--optix-ir",
                             "--diag-suppress=a"}) {
    INFO(option);
    CHECK_THROWS_WITH(
        canonical_nvrtc_option(option, "k.json /options/3"),
        Contains("k.json /options/3: the option \"" + std::string(option) + "\"") && Contains("--"));
  }
}

TEST_CASE("a refusal says why where people would ask") {
  CHECK_THROWS_WITH(canonical_nvrtc_option("-I/usr/include", ""),
                    Contains("folders are listed under `headers`"));
  CHECK_THROWS_WITH(canonical_nvrtc_option("-G", ""), Contains("debug code cannot be timed"));
}

TEST_CASE("two values of one option contradict each other") {
  CHECK_THROWS_WITH(canonical_nvrtc_options({"--fmad=true", "-fmad=false"}, "/options"),
                    Contains("/options/1") && Contains("contradicts"));
  CHECK_THROWS_WITH(canonical_nvrtc_options({"-Xptxas=-O1", "-Xptxas=-O3"}, "/options"),
                    Contains("contradicts"));
  CHECK(canonical_nvrtc_options({"-Xptxas=-O1", "-Xptxas=-dlcm=cg"}, "/options").size() == 2);
}

TEST_CASE("a define is an identifier and one plain line") {
  CHECK_NOTHROW(check_nvrtc_define("VECTOR=4", ""));
  CHECK_NOTHROW(check_nvrtc_define("FLAG", ""));
  for (const char* define :
       {"A B=1", "=1", "1A=1", "A=1\n#include \"/etc/passwd\"", "A=\\", "A(x)=x", "A=\x01"}) {
    CHECK_THROWS_AS(check_nvrtc_define(define, "defines[0]"), Error);
  }
}

TEST_CASE("an entry is a name expression on one line") {
  CHECK_NOTHROW(check_name_expression("ns::kernel<__nv_bfloat16, 256, (8 % 3), 'a'>", ""));
  for (const char* entry :
       {"", "k<3>\n#include \"/etc/passwd\"", "k; int x", "k # x", "k\\", "k /* x", "k \"x\"", "k\r"}) {
    CHECK_THROWS_AS(check_name_expression(entry, "entries[0]"), Error);
  }
}

TEST_CASE("an architecture is a real one") {
  for (const char* good : {"sm_80", "sm_90", "sm_90a", "sm_100f", "sm_120"}) {
    CHECK_NOTHROW(check_architecture(good, ""));
  }
  for (const char* bad : {"", "compute_90", "sm_", "sm_9", "sm_90b", "sm_90 --time=x", "90", "sm_090000"}) {
    CHECK_THROWS_AS(check_architecture(bad, "architecture"), Error);
  }
}

}  // namespace cubind::test
