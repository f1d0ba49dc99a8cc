// The fingerprint of a record: one line that binds a question, a configuration and a cubin. A bundle has a
// signed one for each record; an answer carries it, and the client compares it with its question.
//
//   line  = "cubind/1" 19*( ";" field )
//   field = the members of Fingerprint in their order; control characters, ";", "%" and bytes above "~" are
//           written as "%3B"
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/digest.hpp"
#include "trust/minisign.hpp"

namespace cubind {

struct Fingerprint {
  std::string name_space;
  std::string kernel;
  Digest artifact;      // key: of source, includes, options, entries, architecture and toolchain
  std::string problem;  // the measured problem: "N=4096,D=4096,T=bf16"
  std::string bucket;   // the dims for which the record answers: "N=2049..4096,D=4096..4096"
  Digest device_class;
  std::string policy;     // "cold/3,stream"
  std::string toolchain;  // "nvrtc 13.0"
  std::string architecture;
  std::string configuration;  // "THREADS=128,VECTOR=8"
  std::string numerics;       // "tolerance"
  Digest launches;            // launch_digest() of the plan, with the symbols in the cubin
  Digest cubin;
  std::uint64_t cubin_bytes = 0;
  std::string evidence;  // "measured"
  bool provisional = false;
  // The fingerprint's bundle:
  std::string issuer;
  std::uint64_t serial = 0;
  std::chrono::system_clock::time_point expires{};
  bool operator==(const Fingerprint&) const = default;
};

struct SignedLine {
  std::string line;  // a fingerprint
  Signature signature;
  bool operator==(const SignedLine&) const = default;
};

std::string print_fingerprint(const Fingerprint& fingerprint);
/// The inverse of print_fingerprint(). Throws InvalidArgument at `where` for any text that it does not print.
Fingerprint parse_fingerprint(std::string_view line, const std::string& where);

}  // namespace cubind
