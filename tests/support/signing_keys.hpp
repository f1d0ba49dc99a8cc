// Keys that `minisign -G -W` made. They sign nothing but tests.
#pragma once

#include <string>

#include "trust/minisign.hpp"
#include "trust/trust_file.hpp"

namespace cubind::test {

inline constexpr const char* kPublicKey = "RWSTusczmS7QH5L2It51vEC1qhlIWfNQ4lGb1GLMXmc9CFvB2yiwD7i8";
inline constexpr const char* kSecretKey =
    "untrusted comment: minisign encrypted secret key\n"
    "RWQAAEIyAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAk7rHM5ku0B9gRKtB9hEFsMXpwyDciHRs"
    "e1RA"
    "eqR0df/"
    "o0gT50m84SZL2It51vEC1qhlIWfNQ4lGb1GLMXmc9CFvB2yiwD7i8AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n";
inline constexpr const char* kOtherPublicKey = "RWRXmk7R/dcvzSjCN97mqbYmDDkQ6KLubNToe/OXguxzdHzrviIj333a";
inline constexpr const char* kOtherSecretKey =
    "untrusted comment: minisign encrypted secret key\n"
    "RWQAAEIyAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAV5pO0f3XL81Y9f0Mgnx6sZ5PHaul9/"
    "E2A0yJ"
    "b+aTWouNAqwqeu0OySjCN97mqbYmDDkQ6KLubNToe/"
    "OXguxzdHzrviIj333aAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n";

inline SecretKey signing_key() { return SecretKey::parse(kSecretKey, "acme.key"); }
inline SecretKey other_signing_key() { return SecretKey::parse(kOtherSecretKey, "other.key"); }

/// The line of a trust file for signing_key().
inline std::string trust_line(const std::string& expires = "2099-01-01",
                              const std::string& namespaces = "*") {
  return std::string(kPublicKey) + " acme " + expires + " " + namespaces + "\n";
}

}  // namespace cubind::test
