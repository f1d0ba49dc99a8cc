#include "server/convert/agent_hello.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/error.hpp"
#include "base/refuse.hpp"
#include "plan/answer_wire.hpp"
#include "plan/wire_fields.hpp"
#include "server/convert/limits.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind {
namespace {

constexpr int kMaxDevices = 256;  // of an agent
constexpr int kMaxToolchains = 64;
constexpr int kMaxArchitecturesOfToolchain = 256;
constexpr std::uint32_t kMaxCompileJobs = 4096;

/// Zero: not said.
Digest said_digest(const std::string& bytes, const std::string& field) {
  return bytes.empty() ? Digest() : digest_from_wire(bytes, field);
}

OfferedToolchain offered_toolchain(const v1::Toolchain& wire, bool allows_partial_sandbox,
                                   const std::string& field, int index) {
  if (!wire.assemblers().empty() && wire.assemblers_size() != wire.architectures_size()) {
    throw Error(ErrorCode::InvalidArgument, element_member(field, index, "assemblers"),
                "has " + std::to_string(wire.assemblers_size()) + " versions for " +
                    std::to_string(wire.architectures_size()) + " architectures");
  }
  check_text(wire.name(), element_member(field, index, "name"));
  check_count(wire.architectures_size(), kMaxArchitecturesOfToolchain,
              element_member(field, index, "architectures"));
  check_texts(wire.architectures(), element_member(field, index, "architectures"));
  check_texts(wire.assemblers(), element_member(field, index, "assemblers"));
  check_texts(wire.sandbox_lacks(), element_member(field, index, "sandbox_lacks"), kMaxReasonBytes);
  return {wire.name(),
          wire.major(),
          wire.minor(),
          {wire.architectures().begin(), wire.architectures().end()},
          said_digest(wire.nvrtc_digest(), element_member(field, index, "nvrtc_digest")),
          said_digest(wire.builtins_digest(), element_member(field, index, "builtins_digest")),
          {wire.assemblers().begin(), wire.assemblers().end()},
          {wire.sandbox_lacks().begin(), wire.sandbox_lacks().end()},
          wire.sandbox_lacks().empty() || allows_partial_sandbox};
}

}  // namespace

std::vector<OfferedDevice> devices_from_wire(
    const google::protobuf::RepeatedPtrField<v1::OfferedDevice>& devices, const std::string& field) {
  check_count(devices.size(), kMaxDevices, field);
  std::vector<OfferedDevice> offered;
  for (int i = 0; i < devices.size(); ++i) {
    OfferedDevice device;
    device.uuid = devices[i].uuid();
    check_name(device.uuid, element_member(field, i, "uuid"));
    check_facts(devices[i].facts(), element_member(field, i, "facts"));
    check_text(devices[i].driver().version(), element_member(field, i, "driver.version"));
    check_text(devices[i].consent(), element_member(field, i, "consent"), kMaxReasonBytes);
    device.device = derive_device_class(devices[i].facts(), element_member(field, i, "facts"));
    device.driver = {devices[i].driver().cuda(), devices[i].driver().version()};
    device.consent = devices[i].consent();
    device.trial_memory_bytes = devices[i].trial_memory_bytes();
    check_texts(devices[i].recorded(), element_member(field, i, "recorded"));
    device.recorded.assign(devices[i].recorded().begin(), devices[i].recorded().end());
    std::ranges::sort(device.recorded);
    offered.push_back(std::move(device));
  }
  return offered;
}

AgentProfile profile_from_wire(const v1::Hello& hello) {
  check_name(hello.agent_id(), "hello.agent_id");
  check_text(hello.version(), "hello.version");
  AgentProfile profile;
  profile.id = hello.agent_id();
  profile.version = hello.version();
  if (hello.compile_jobs() > kMaxCompileJobs) {
    refuse("hello.compile_jobs",
           std::to_string(hello.compile_jobs()) + " is above " + std::to_string(kMaxCompileJobs));
  }
  profile.compile_jobs = hello.compile_jobs();
  profile.devices = devices_from_wire(hello.devices(), "hello.devices");
  check_text(hello.no_device_because(), "hello.no_device_because", kMaxReasonBytes);
  profile.no_device_because = hello.no_device_because();
  check_count(hello.toolchains_size(), kMaxToolchains, "hello.toolchains");
  for (int i = 0; i < hello.toolchains_size(); ++i) {
    profile.toolchains.push_back(
        offered_toolchain(hello.toolchains(i), hello.allows_partial_sandbox(), "hello.toolchains", i));
  }
  return profile;
}

}  // namespace cubind
