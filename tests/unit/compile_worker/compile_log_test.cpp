#include "tuner/worker/compile_log.hpp"

#include <catch2/catch.hpp>

using cubind::worker::KernelResources;
using cubind::worker::parse_compile_log;
using cubind::worker::redefined_macro;

namespace {

// As NVRTC 13.0 prints it.
constexpr char kLog[] =
    "k.cu(3): warning #177-D: variable \"unused\" was declared but never referenced\n"
    "\n"
    "ptxas info    : 0 bytes gmem\n"
    "ptxas info    : Compiling entry function '_Z1kILi128EEvPfi' for 'sm_90a'\n"
    "ptxas info    : Function properties for _Z1kILi128EEvPfi\n"
    "ptxas         .     848 bytes stack frame, 740 bytes spill stores, 960 bytes spill loads\n"
    "ptxas info    : Used 32 registers, used 1 barriers, 864 bytes cumulative stack size, 512 bytes smem\n"
    "ptxas info    : Compile time = 50.640 ms\n"
    "ptxas info    : Function properties for _Z6helperPfi\n"
    "ptxas         .     16 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads\n"
    "ptxas info    : Compiling entry function 'mma' for 'sm_90a'\n"
    "ptxas info    : Function properties for mma\n"
    "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
    "ptxas info    : Used 18 registers, used 0 barriers\n"
    "ptxas info    : Compile time = 1.650 ms\n"
    "ptxas warning : Too big maxrregcount value specified 300, will be ignored\n";

}  // namespace

TEST_CASE("each kernel has its own resources and a helper's count for none") {
  const auto log = parse_compile_log(kLog);
  REQUIRE(log.kernels.size() == 2);
  CHECK(log.kernels.at("_Z1kILi128EEvPfi") == KernelResources{.registers = 32,
                                                              .static_shared_bytes = 512,
                                                              .local_bytes = 864,
                                                              .spill_store_bytes = 740,
                                                              .spill_load_bytes = 960});
  CHECK(log.kernels.at("mma") == KernelResources{.registers = 18});
}

TEST_CASE("messages keep warnings and lose what changes from run to run") {
  const std::string messages = parse_compile_log(kLog).messages;
  CHECK_THAT(messages, Catch::Matchers::Contains("unused") && Catch::Matchers::Contains("ptxas warning"));
  CHECK_THAT(messages,
             !Catch::Matchers::Contains("Compile time") && !Catch::Matchers::Contains("ptxas info"));
}

TEST_CASE("a log without messages is empty") {
  CHECK(parse_compile_log("").messages.empty());
  CHECK(parse_compile_log("ptxas info    : 0 bytes gmem\n\n").messages.empty());
}

TEST_CASE("a macro of the spec that the source defines otherwise is found by the warning") {
  const std::string log =
      "k.cu(1): warning #47-D: incompatible redefinition of macro \"W\" (declared at line 3)\n";
  CHECK(redefined_macro(log, {"V=1", "W=4"}) == "W=4");
  CHECK(redefined_macro(log, {"WIDTH=4", "FLAG"}).empty());
  CHECK(redefined_macro("", {"W=4"}).empty());
}
