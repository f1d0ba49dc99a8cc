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

/// gRPC reads changed files again within seconds, for connections that come later: a certificate and its key
/// have to be replaced together, since connections fail while they do not fit. Throws the fault of a file
/// that cannot be read, and InvalidArgument for what is no certificate, no key, or the key of another
/// certificate.
std::shared_ptr<grpc::ServerCredentials> tls_credentials(const TlsFiles& files);

}  // namespace cubind
