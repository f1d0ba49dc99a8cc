#include "server/tls_credentials.hpp"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/file_watch.hpp"
#include "base/log.hpp"

namespace cubind {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{500};

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

struct TlsTexts {
  std::string certificate, key, client_ca;  // PEM
};

TlsTexts read_pair(const TlsFiles& files) {
  TlsTexts texts{read_file(files.certificate), read_file(files.key), ""};
  const Certificate certificate = certificate_in(files.certificate, texts.certificate);
  // The empty passphrase: OpenSSL would ask the terminal for one.
  const Key key(PEM_read_bio_PrivateKey(opened(texts.key).get(), nullptr, nullptr, const_cast<char*>("")));
  if (!key) {
    refuse(files.key, "has no private key in PEM without a passphrase");
  }
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    refuse(files.key, "is not the key of the certificate " + files.certificate.string());
  }
  if (!files.client_ca.empty()) {
    texts.client_ca = read_file(files.client_ca);
    certificate_in(files.client_ca, texts.client_ca);
  }
  return texts;
}

std::vector<std::filesystem::path> paths_of(const TlsFiles& files) {
  std::vector<std::filesystem::path> paths{files.certificate, files.key};
  if (!files.client_ca.empty()) {
    paths.push_back(files.client_ca);
  }
  return paths;
}

/// gRPC's own watcher of such files takes whatever they hold, a certificate without its key too, and refuses
/// each connection until they fit again.
class CheckedTls final : public grpc::ServerCredentials {
 public:
  explicit CheckedTls(TlsFiles files)
      : files_(std::move(files)),
        seen_(stamps_of(paths_of(files_))),
        texts_(read_pair(files_)),
        credentials_(grpc_ssl_server_credentials_create_with_options(
            grpc_ssl_server_credentials_create_options_using_config_fetcher(
                files_.client_ca.empty() ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                                         : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY,
                [](void* self, auto** config) { return static_cast<CheckedTls*>(self)->give(config); },
                this))),
        watch_(watch_files(paths_of(files_), seen_, kBetweenLooks,
                           [this](bool is_again) { return reload(is_again); })) {}
  ~CheckedTls() override { grpc_server_credentials_release(credentials_); }
  CheckedTls(const CheckedTls&) = delete;
  CheckedTls& operator=(const CheckedTls&) = delete;

  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {
    throw Error(ErrorCode::Unimplemented, "TLS", "has no processor of metadata");
  }

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  bool reload(bool is_again) {
    try {
      TlsTexts texts = read_pair(files_);
      const std::lock_guard lock(mutex_);
      texts_ = std::move(texts);
      is_given_ = false;
    } catch (const std::exception& fault) {
      if (!is_again) {
        log_error(std::string("TLS: the earlier certificate stays, since its files cannot be used: ") +
                  fault.what());
      }
      return false;
    }
    log_info("TLS: " + files_.certificate.string() + " was read again");
    return true;
  }

  /// Asked for each connection.
  grpc_ssl_certificate_config_reload_status give(grpc_ssl_server_certificate_config** config) {
    const std::lock_guard lock(mutex_);
    if (std::exchange(is_given_, true)) {
      return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    }
    const grpc_ssl_pem_key_cert_pair pair{texts_.key.c_str(), texts_.certificate.c_str()};
    // Debian's gRPC wants some CA also where it asks clients for no certificate, and does not use it then.
    const std::string& client_ca = texts_.client_ca.empty() ? texts_.certificate : texts_.client_ca;
    *config = grpc_ssl_server_certificate_config_create(client_ca.c_str(), &pair, 1);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const TlsFiles files_;
  const FileStamps seen_;  // before the first reading
  std::mutex mutex_;
  TlsTexts texts_;         // guarded by mutex_
  bool is_given_ = false;  // gRPC has these texts; guarded by mutex_
  grpc_server_credentials* const credentials_;
  const std::jthread watch_;  // ends first
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> tls_credentials(const TlsFiles& files) {
  return std::make_shared<CheckedTls>(files);
}

}  // namespace cubind
