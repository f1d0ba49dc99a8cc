#pragma once

#include <optional>
#include <string>

namespace cubind {

/// What compiles a Triton kernel: the Triton that made its IR, with its assembler for the architecture.
struct TritonTarget {
  std::string version;       // "3.6.0"
  std::string ptxas;         // "12.9.86"
  std::string architecture;  // "sm_90"
  bool operator==(const TritonTarget&) const = default;

  /// "triton 3.6.0": what toolchains are named.
  std::string name() const { return "triton " + version; }
};

/// That of a spec's text, of which nothing else is checked; absent: it is no Triton kernel's. Throws
/// Error(InvalidArgument) for a text that is not JSON or lacks it.
std::optional<TritonTarget> triton_target(const std::string& spec_json, const std::string& file);

}  // namespace cubind
