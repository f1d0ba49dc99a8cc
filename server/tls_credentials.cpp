#include "server/tls_credentials.hpp"

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

/// The first one of the file; all of them are whole.
Certificate certificate_in(const std::filesystem::path& file, const std::string& text) {
  const Bio pem = opened(text);
  Certificate first(PEM_read_bio_X509(pem.get(), nullptr, nullptr, nullptr));
  if (!first) {
    refuse(file, "has no certificate in PEM: -----BEGIN CERTIFICATE-----");
  }
  while (Certificate(PEM_read_bio_X509(pem.get(), nullptr, nullptr, nullptr))) {
  }
  if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE) {
    refuse(file, "has a certificate that is not whole");
  }
  ERR_clear_error();
  return first;
}

void check_pair(const TlsFiles& files) {
  const Certificate certificate = certificate_in(files.certificate, read_file(files.certificate));
  // The empty passphrase: OpenSSL would ask the terminal for one.
  const Key key(
      PEM_read_bio_PrivateKey(opened(read_file(files.key)).get(), nullptr, nullptr, const_cast<char*>("")));
  if (!key) {
    refuse(files.key, "has no private key in PEM without a passphrase");
  }
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    refuse(files.key, "is not the key of the certificate " + files.certificate.string());
  }
  if (!files.client_ca.empty()) {
    certificate_in(files.client_ca, read_file(files.client_ca));
  }
}

}  // namespace

std::shared_ptr<grpc::ServerCredentials> tls_credentials(const TlsFiles& files) {
  check_pair(files);
  grpc::experimental::TlsServerCredentialsOptions options(
      std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
          files.key, files.certificate, files.client_ca, kSecondsBetweenLooks));
  options.watch_identity_key_cert_pairs();
  if (!files.client_ca.empty()) {
    options.watch_root_certs();
    options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  }
  return grpc::experimental::TlsServerCredentials(options);
}

}  // namespace cubind
