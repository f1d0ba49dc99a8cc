#include "tuner/spec/device_class.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/key_encoder.hpp"
#include "base/refuse.hpp"
#include "base/text.hpp"
#include "plan/wire_fields.hpp"

namespace cubind {
namespace {

// Facts that no GPU can have: wrong units, or nonsense that would become a class of its own and wait for
// an agent forever.
void require_range(std::uint64_t value, std::uint64_t low, std::uint64_t high, std::string_view field,
                   std::string_view name) {
  if (value >= low && value <= high) {
    return;
  }
  refuse(member_field(field, name), value == 0 ? "the fact is missing, a device class needs it"
                                               : std::to_string(value) + " is not in " + std::to_string(low) +
                                                     " to " + std::to_string(high));
}

void require_possible(const DeviceFacts& facts, std::string_view field) {
  constexpr std::uint64_t kOldestMajor = 5;  // the oldest that NVRTC 12 compiles for
  constexpr std::uint64_t kLastMajor = 19;
  require_range(facts.pci_device_id(), 1, UINT32_MAX, field, "pci_device_id");
  require_range(facts.cc_major(), kOldestMajor, kLastMajor, field, "cc_major");
  require_range(facts.cc_minor(), 0, 9, field, "cc_minor");
  require_range(facts.sm_count(), 1, 1 << 16, field, "sm_count");
  require_range(facts.l2_bytes(), 1, (std::uint64_t{1} << 40) - 1, field, "l2_bytes");
  require_range(facts.shared_optin_bytes(), 1, (std::uint64_t{1} << 32) - 1, field, "shared_optin_bytes");
  require_range(facts.memory_bytes(), 1, (std::uint64_t{1} << 50) - 1, field, "memory_bytes");
  require_range(facts.memory_bus_bits(), 1, 1 << 20, field, "memory_bus_bits");
}

// k for 2^(k/4) GiB: boards of one model differ by what firmware and ECC reserve.
std::int64_t memory_step(std::uint64_t bytes) {
  return std::llround(4.0 * std::log2(static_cast<double>(bytes) / 1073741824.0));
}

std::string slug(std::string_view name) {
  std::string text;
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (letter) {
      text += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    } else if (!text.empty() && text.back() != '-') {
      text += '-';
    }
  }
  while (!text.empty() && text.back() == '-') {
    text.pop_back();
  }
  return text;
}

std::string label_of(const DeviceFacts& facts) {
  if (!facts.replay_table().empty()) {
    return "replay-" + facts.replay_table().substr(0, 8);
  }
  const std::string name = facts.name().empty() ? "gpu" : slug(facts.name());
  return facts.mig_profile().empty() ? name : name + "-mig-" + slug(facts.mig_profile());
}

std::optional<std::uint32_t> parse_number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

DeviceClass derive_device_class(const DeviceFacts& facts, std::string_view field) {
  require_possible(facts, field);
  KeyEncoder key("device_class", 1);
  key.field("pci_device_id", facts.pci_device_id())
      .field("cc_major", facts.cc_major())
      .field("cc_minor", facts.cc_minor())
      .field("sm_count", facts.sm_count())
      .field("l2_bytes", facts.l2_bytes())
      .field("shared_optin_bytes", facts.shared_optin_bytes())
      .field("memory_step", memory_step(facts.memory_bytes()))
      .field("memory_bus_bits", facts.memory_bus_bits())
      .field("mig_profile", facts.mig_profile())
      .field("replay_table", facts.replay_table());
  return {key.digest(), key.bytes(), label_of(facts), facts};
}

DeviceConstants device_constants(const DeviceFacts& facts) {
  DeviceConstants constants;
  constants.sm_count = facts.sm_count();
  constants.shared_optin = static_cast<std::int64_t>(facts.shared_optin_bytes());
  constants.l2_bytes = static_cast<std::int64_t>(facts.l2_bytes());
  constants.cc = static_cast<std::int64_t>(facts.cc_major()) * 10 + facts.cc_minor();
  return constants;
}

std::string architecture(const DeviceFacts& facts, bool arch_features) {
  return architecture(facts.cc_major() * 10 + facts.cc_minor(), arch_features);
}

std::string architecture(std::uint32_t compute_capability, bool arch_features) {
  const bool suffixed = arch_features && compute_capability >= 90;
  return "sm_" + std::to_string(compute_capability) + (suffixed ? "a" : "");
}

std::optional<std::uint32_t> compute_capability(std::string_view architecture) {
  if (!architecture.starts_with("sm_")) {
    return std::nullopt;
  }
  architecture.remove_prefix(3);
  if (architecture.ends_with('a') || architecture.ends_with('f')) {
    architecture.remove_suffix(1);
  }
  const auto number = parse_number(architecture);
  return number && *number >= 10 ? number : std::nullopt;
}

bool knows_architecture(std::span<const std::string> known, std::string_view architecture) {
  if (architecture.ends_with('a') || architecture.ends_with('f')) {
    architecture.remove_suffix(1);
  }
  return std::ranges::find(known, architecture) != known.end();
}

bool cubin_runs_on(std::string_view architecture, std::uint32_t cc_major, std::uint32_t cc_minor) {
  const auto capability = compute_capability(architecture);
  if (!capability) {
    return false;
  }
  // A suffix binds a cubin to its own capability. For family suffixes ("f") that is stricter than necessary
  // and never wrong.
  const bool suffixed = architecture.ends_with('a') || architecture.ends_with('f');
  const std::uint32_t major = *capability / 10;
  const std::uint32_t minor = *capability % 10;
  return major == cc_major && (suffixed ? minor == cc_minor : minor <= cc_minor);
}

bool driver_loads(std::uint32_t driver_cuda, std::uint32_t nvrtc_major) {
  return driver_cuda >= nvrtc_major * 1000;
}

std::string driver_branch(std::string_view driver_version) {
  return std::string(driver_version.substr(0, driver_version.find('.')));
}

}  // namespace cubind
