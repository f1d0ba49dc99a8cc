#include "server/fleet.hpp"

#include <catch2/catch.hpp>

namespace cubind::test {
namespace {

AgentProfiles agents_with_both() {
  AgentProfile agent;
  agent.toolchains = {{"nvrtc 13.0", 13, 0, {"sm_75", "sm_90"}}, {"nvrtc 12.9", 12, 9, {"sm_70", "sm_90"}}};
  return {agent};
}

std::string chosen(std::uint32_t driver_cuda, const std::string& architecture) {
  const auto toolchain = current_toolchain(agents_with_both(), {{}, architecture, driver_cuda});
  return toolchain ? toolchain->name : "none";
}

TEST_CASE("the newest toolchain that the driver loads is the current one") {
  CHECK(chosen(13000, "sm_90") == "nvrtc 13.0");
  CHECK(chosen(12080, "sm_90") == "nvrtc 12.9");
  CHECK(chosen(0, "") == "nvrtc 13.0");
}

TEST_CASE("a toolchain that does not know the architecture is not the current one") {
  CHECK(chosen(13000, "sm_70") == "nvrtc 12.9");
  CHECK(chosen(12080, "sm_75") == "none");
}

TEST_CASE("today's toolchain is every build that agents have of the newest version") {
  AgentProfiles agents = agents_with_both();
  agents.push_back(agents.front());
  agents[0].toolchains[0].nvrtc = Digest::of("a");
  agents[1].toolchains[0].nvrtc = Digest::of("b");
  const auto today = toolchain_of_today(agents, {{}, "sm_90", 13000});
  REQUIRE(today);
  CHECK(is_current(*today, {"nvrtc 13.0", Digest::of("b"), {}, Digest::of("headers")}));
  CHECK_FALSE(is_current(*today, {"nvrtc 13.0", Digest::of("c"), {}, {}}));
  CHECK_FALSE(is_current(*today, {"nvrtc 12.9", Digest::of("a"), {}, {}}));
}

TEST_CASE("an agent that does not say which build it has makes no build of the version an old one") {
  AgentProfiles agents = agents_with_both();
  agents.push_back(agents.front());
  agents[0].toolchains[0].nvrtc = Digest::of("a");
  const auto today = toolchain_of_today(agents, {{}, "sm_90", 0});
  CHECK(is_current(*today, {"nvrtc 13.0", Digest::of("c"), {}, {}}));
}

TEST_CASE("a label is told apart by the first digits of its class and not by none") {
  AgentProfiles agents(1);
  DeviceClass& device = agents[0].devices.emplace_back().device;
  device.label = "gpu";
  device.digest = Digest::of("class");
  const auto resolved = [&](const std::string& label) {
    return resolve_label(label, agents, IndexSnapshot(), "device").digest;
  };
  CHECK(resolved("gpu") == device.digest);
  CHECK(resolved("gpu@" + device.digest.hex().substr(0, 8)) == device.digest);
  CHECK_THROWS(resolved("gpu@"));
}

}  // namespace
}  // namespace cubind::test
