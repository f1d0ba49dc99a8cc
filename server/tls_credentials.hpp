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

/// They must outlive the server. Changed files are read again, for connections that come later; files that
/// cannot be used, such as a certificate without its key, leave the earlier ones in force, and the log says
/// so. Throws the fault of a file that cannot be read, and InvalidArgument for what is no certificate, no
/// key, or the key of another certificate.
std::shared_ptr<grpc::ServerCredentials> tls_credentials(const TlsFiles& files);

}  // namespace cubind
