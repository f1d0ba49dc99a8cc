#include "tuner/worker/missing_header.hpp"

#include <catch2/catch.hpp>

using cubind::worker::explain_missing_headers;

namespace {

// As NVRTC 12.9 and 13.0 print it.
std::string line(const std::string& header) {
  return "k.cu(1): catastrophic error: could not open source file \"" + header +
         "\" (no directories in search list)\n  #include <x>\n";
}

bool names(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a missing header of the toolkit is reported with the packages of the release that bring it") {
  const std::string cccl = explain_missing_headers(line("cuda/std/limits"), 13, 0);
  CHECK(names(cccl, "\"cuda/std/limits\" (not in the spec's folder"));
  CHECK(names(cccl, "`pip install 'nvidia-cuda-cccl==13.*'` or `apt install cuda-cccl-13-0`"));
  CHECK(names(cccl, ")\n  #include <x>\n"));
  CHECK(names(explain_missing_headers(line("crt/mma.h"), 13, 1), "nvidia-cuda-crt==13.*"));
  CHECK(names(explain_missing_headers(line("cuda_fp16.h"), 13, 0), "nvidia-cuda-runtime==13.*"));
}

TEST_CASE("CUDA 12 has wheels of other names") {
  CHECK(names(explain_missing_headers(line("cuda/std/limits"), 12, 9), "nvidia-cuda-cccl-cu12==12.*"));
  const std::string crt = explain_missing_headers(line("crt/mma.h"), 12, 9);
  CHECK(names(crt, "`pip install 'nvidia-cuda-nvcc-cu12==12.*'` or `apt install cuda-crt-12-9`"));
}

TEST_CASE("each of several missing headers is explained, and the rest of the log is kept") {
  const std::string log = "before\n" + line("mma.h") + line("vector") + "after\n";
  const std::string text = explain_missing_headers(log, 13, 0);
  CHECK(text.starts_with("before\n"));
  CHECK(names(text, "cuda-cudart-dev-13-0"));
  CHECK(
      names(text, "\"vector\" (not in the spec's folder, its \"headers\" or the CUDA toolkit; put headers"));
  CHECK(text.ends_with("after\n"));
  CHECK_FALSE(names(text, "no directories"));
}

TEST_CASE("an absolute name and one that climbs say what can be included") {
  const std::string mark = explain_missing_headers(line("(absolute path)/etc/x.h"), 13, 0);
  CHECK(names(mark, "x.h\" (an absolute path: only the spec's own files"));
  const std::string by_macro = "cannot open source file \"/etc/x.h\": Too many open files\n";
  CHECK(names(explain_missing_headers(by_macro, 13, 0), "/etc/x.h\" (an absolute path"));
  CHECK(names(explain_missing_headers(line("../x.h"), 13, 0), "list its folder under \"headers\""));
}
