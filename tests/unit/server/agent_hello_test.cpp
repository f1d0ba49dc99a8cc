#include "server/convert/agent_hello.hpp"

#include <catch2/catch.hpp>

#include <cstdint>

#include "tests/support/refusal_of.hpp"
#include "tests/unit/server/rows.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;

std::string refusal(const v1::Hello& hello) {
  return refusal_of([&] { profile_from_wire(hello); });
}

v1::Hello hello() {
  v1::Hello hello;
  hello.set_agent_id("agent");
  hello.add_toolchains()->set_name("nvrtc 13.0");
  hello.add_devices()->set_uuid("GPU-1");
  *hello.mutable_devices(0)->mutable_facts() = h200();
  return hello;
}

struct FalseHello {
  const char* field;
  void (*tell)(v1::Hello& hello);
};

TEST_CASE("a hello with more than any host has is refused with its field") {
  const auto told =
      GENERATE(FalseHello{"hello.devices: has 10001 elements",
                          [](v1::Hello& h) {
                            for (int i = 0; i < 10'000; ++i) {
                              (*h.add_devices() = h.devices(0)).set_uuid("GPU-" + std::to_string(i));
                            }
                          }},
               FalseHello{"hello.toolchains: has 10001 elements",
                          [](v1::Hello& h) {
                            for (int i = 0; i < 10'000; ++i) {
                              h.add_toolchains()->set_name("nvrtc 13.0");
                            }
                          }},
               FalseHello{"hello.toolchains[0].architectures",
                          [](v1::Hello& h) {
                            for (int i = 0; i < 10'000; ++i) {
                              h.mutable_toolchains(0)->add_architectures("sm_90");
                            }
                          }},
               FalseHello{"hello.toolchains[0].nvrtc_digest",
                          [](v1::Hello& h) { h.mutable_toolchains(0)->set_nvrtc_digest("short"); }},
               FalseHello{"hello.toolchains[0].builtins_digest",
                          [](v1::Hello& h) { h.mutable_toolchains(0)->set_builtins_digest("short"); }},
               FalseHello{"hello.compile_jobs", [](v1::Hello& h) { h.set_compile_jobs(UINT32_MAX); }});
  CAPTURE(told.field);
  v1::Hello message = hello();
  REQUIRE(refusal(message).empty());
  told.tell(message);
  CHECK_THAT(refusal(message), Contains(told.field));
}

TEST_CASE("a control character of one or two bytes is in no name") {
  const char* id = GENERATE("a\x1b", "a\t", "a\nb", "a\x7f",
                            "a\xc2\x9b"
                            "31m");
  v1::Hello message = hello();
  message.set_agent_id(id);
  CHECK_THAT(refusal(message), Contains("hello.agent_id"));
  message.set_agent_id("Knoten äöü 7");
  CHECK(refusal(message).empty());
}

}  // namespace
}  // namespace cubind::test
