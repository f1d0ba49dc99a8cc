// The TLS of --listen.
#pragma once

#include <grpcpp/security/server_credentials.h>

#include <filesystem>
#include <memory>

namespace cubind {

struct TlsFiles {
  std::filesystem::path certificate;  // PEM chain
  std::filesystem::path key;          // PEM
  std::filesystem::path client_ca;    // PEM; empty: clients need no certificate
};

/// Reads changed files again, for connections that come later. Throws the fault of a file that cannot be
/// read, and InvalidArgument if the key is not that of the certificate.
std::shared_ptr<grpc::ServerCredentials> tls_credentials(const TlsFiles& files);

}  // namespace cubind
