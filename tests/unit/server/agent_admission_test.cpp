#include "server/service/agent_admission.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "schemas/limits.hpp"
#include "tests/support/refusal_of.hpp"
#include "tests/unit/server/rows.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;

DeviceFacts facts_of(std::uint32_t pci_device_id, const std::string& name) {
  DeviceFacts facts = h200();
  facts.set_pci_device_id(pci_device_id);
  facts.set_name(name);
  return facts;
}

struct Offering {
  /// Why an agent whose token has these classes may not offer this GPU; empty: it may.
  std::string refusal(const Scope& classes, const DeviceFacts& facts) {
    Caller caller{.name = "gpu7", .roles = {CallerRole::Agent}, .device_classes = classes};
    const auto error = error_of(
        [&] { check_offer(caller, agent("new", {offered("GPU-1", facts)}), known, *index.snapshot()); });
    CHECK((!error || error->code() == ErrorCode::PermissionDenied));
    return error ? error->what() : "";
  }

  static OfferedDevice offered(const std::string& uuid, const DeviceFacts& facts) {
    return {uuid, derive_device_class(facts, "facts"), {13000, "580.159.04"}, "idle"};
  }
  static AgentProfile agent(const std::string& id, std::vector<OfferedDevice> devices) {
    AgentProfile profile;
    profile.id = id;
    profile.devices = std::move(devices);
    return profile;
  }

  const std::string h200_label = h200_class().label;
  AgentProfiles known{agent("a", {offered("GPU-2", h200()), offered("GPU-3", facts_of(1, "NVIDIA H100"))})};
  Index index;
};

TEST_CASE_METHOD(Offering, "a token of a device class admits the GPUs that the daemon knows by that name") {
  CHECK(refusal({h200_label}, h200()).empty());
  CHECK_THAT(refusal({h200_label}, facts_of(1, "NVIDIA H100")), Contains("nvidia-h100"));
}

TEST_CASE_METHOD(Offering, "a GPU that bears the name of another class is not admitted for it") {
  CHECK_THAT(refusal({h200_label}, facts_of(1, h200().name())), Contains("nvidia-h100"));
  const DeviceFacts unknown = facts_of(2, h200().name());
  const std::string digest = derive_device_class(unknown, "facts").digest.hex();
  CHECK_THAT(refusal({h200_label}, unknown), Contains("--device-class " + digest));
}

TEST_CASE_METHOD(
    Offering, "a token that names a class by its digest or all classes admits a GPU that is not known yet") {
  const DeviceFacts unknown = facts_of(2, "NVIDIA New");
  CHECK(refusal({derive_device_class(unknown, "facts").digest.hex()}, unknown).empty());
  CHECK(refusal({kEverything}, unknown).empty());
}

TEST_CASE_METHOD(Offering, "an offer with one GPU twice or with more memory than it has is refused") {
  const bool twice = GENERATE(false, true);
  const Caller caller = caller_of_socket();
  std::vector<OfferedDevice> devices(twice ? 2 : 1, {"GPU-1", h200_class(), {}, "idle"});
  check_offer(caller, agent("new", {devices[0]}), {}, *index.snapshot());
  devices[0].trial_memory_bytes = twice ? 0 : h200().memory_bytes() + 1;
  CHECK_THROWS_AS(check_offer(caller, agent("new", devices), {}, *index.snapshot()), Error);
}

TEST_CASE_METHOD(Offering, "the agents of one token offer a limited number of device classes between them") {
  const auto agent_with_classes = [&](const std::string& id, std::uint32_t from, std::size_t count) {
    std::vector<OfferedDevice> devices;
    for (std::uint32_t i = from; devices.size() < count; ++i) {
      devices.push_back(offered("GPU-" + std::to_string(i), facts_of(i, "NVIDIA H100")));
    }
    return agent(id, std::move(devices));
  };
  const AgentProfile first = agent_with_classes("first", 1, kMaxClassesOfToken - 1);
  const auto why_refused = [&](const AgentProfile& offer) -> std::string {
    try {
      check_offer(caller_of_socket(), offer, {first}, *index.snapshot());
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::ResourceExhausted);
      return error.what();
    }
    return "";
  };
  CHECK(why_refused(agent_with_classes("second", 1, 10)).empty());  // of the same classes
  CHECK(why_refused(agent_with_classes("second", kMaxClassesOfToken, 1)).empty());
  AgentProfile many = agent_with_classes("second", kMaxClassesOfToken, 2);
  CHECK_THAT(why_refused(many), Contains("65 device classes"));
  many.id = first.id;  // in place of its earlier offer
  CHECK(why_refused(many).empty());
  many.id = "second";
  many.token = "t-2";
  CHECK(why_refused(many).empty());
}

v1::Hello speaking(std::uint32_t oldest, std::uint32_t newest) {
  v1::Hello hello;
  hello.set_oldest_protocol(oldest);
  hello.set_protocol(newest);
  return hello;
}

TEST_CASE("agent and daemon speak the newest version that both know") {
  CHECK(common_protocol(speaking(kOldestAgentProtocol, kOldestAgentProtocol)) == kOldestAgentProtocol);
  CHECK(common_protocol(speaking(kOldestAgentProtocol, kAgentProtocol + 5)) == kAgentProtocol);
}

TEST_CASE("without a common version the refusal has both ranges and what to upgrade") {
  const std::string daemon = ", this daemon version 1";
  CHECK_THROWS_WITH(common_protocol(speaking(0, 0)),
                    "hello.protocol: the agent speaks version 0" + daemon + ": upgrade the agent");
  CHECK_THROWS_WITH(common_protocol(speaking(98, 99)),
                    "hello.protocol: the agent speaks versions 98 to 99" + daemon + ": upgrade the daemon");
}

}  // namespace
}  // namespace cubind::test
