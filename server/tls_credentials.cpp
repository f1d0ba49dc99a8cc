#include "server/tls_credentials.hpp"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <string>

#include "base/error.hpp"
#include "base/file.hpp"

namespace cubind {
namespace {

constexpr unsigned kSecondsBetweenLooks = 1;

template <auto free>
struct Free {
  template <typename T>
  void operator()(T* object) const {
    free(object);
  }
};
using Bio = std::unique_ptr<BIO, Free<BIO_free>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& cause) {
  ERR_clear_error();
  throw Error(ErrorCode::InvalidArgument, file.string(), cause);
}

Bio opened(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

Certificate certificate_in(const std::filesystem::path& file) {
  const std::string text = read_file(file);
  Certificate certificate(PEM_read_bio_X509(opened(text).get(), nullptr, nullptr, nullptr));
  if (!certificate) {
    refuse(file, "has no certificate in PEM: -----BEGIN CERTIFICATE-----");
  }
  return certificate;
}

/// gRPC would take such files, and refuse each connection.
void check_pair(const TlsFiles& files) {
  const Certificate certificate = certificate_in(files.certificate);
  const std::string text = read_file(files.key);
  // The empty passphrase: OpenSSL would ask the terminal for one.
  const Key key(PEM_read_bio_PrivateKey(opened(text).get(), nullptr, nullptr, const_cast<char*>("")));
  if (!key) {
    refuse(files.key, "has no private key in PEM without a passphrase");
  }
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    refuse(files.key, "is not the key of the certificate " + files.certificate.string());
  }
  if (!files.client_ca.empty()) {
    certificate_in(files.client_ca);
  }
}

}  // namespace

std::shared_ptr<grpc::ServerCredentials> tls_credentials(const TlsFiles& files) {
  using grpc::experimental::FileWatcherCertificateProvider;
  check_pair(files);
  const bool is_mutual = !files.client_ca.empty();
  const auto provider = is_mutual ? std::make_shared<FileWatcherCertificateProvider>(
                                        files.key, files.certificate, files.client_ca, kSecondsBetweenLooks)
                                  : std::make_shared<FileWatcherCertificateProvider>(
                                        files.key, files.certificate, kSecondsBetweenLooks);
  grpc::experimental::TlsServerCredentialsOptions options(provider);
  options.watch_identity_key_cert_pairs();
  if (is_mutual) {
    options.watch_root_certs();
  }
  options.set_cert_request_type(is_mutual ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                                          : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  return grpc::experimental::TlsServerCredentials(options);
}

}  // namespace cubind
