#include "connect/channel.hpp"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/client_interceptor.h>

#include <cstdlib>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "connect/address.hpp"

namespace cubind {
namespace {

constexpr std::string_view kTls = "tls://";
constexpr std::uint64_t kMaxFileBytes = std::uint64_t{1} << 20;

using grpc::experimental::InterceptorBatchMethods;

/// Call credentials would do the same, and gRPC refuses them without TLS.
class MetadataInterceptor final : public grpc::experimental::Interceptor {
 public:
  MetadataInterceptor(const std::string& name, const std::string& value) : name_(name), value_(value) {}

  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(
            grpc::experimental::InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
      methods->GetSendInitialMetadata()->emplace(name_, value_);
    }
    methods->Proceed();
  }

 private:
  const std::string &name_, &value_;
};

class MetadataInterceptorFactory final : public grpc::experimental::ClientInterceptorFactoryInterface {
 public:
  MetadataInterceptorFactory(std::string name, std::string value)
      : name_(std::move(name)), value_(std::move(value)) {}

  grpc::experimental::Interceptor* CreateClientInterceptor(grpc::experimental::ClientRpcInfo*) override {
    return new MetadataInterceptor(name_, value_);
  }

 private:
  const std::string name_, value_;
};

std::string token_in(const std::filesystem::path& file) {
  std::string token(trimmed(read_file(file, kMaxFileBytes)));
  if (!token.starts_with("cubind_") || token.find_first_of(" \t\r\n") != std::string::npos) {
    throw Error(ErrorCode::InvalidArgument, "CUBIND_TOKEN_FILE " + file.string(),
                "holds no token: a line \"cubind_ID_SECRET\", as `cubindctl token new` prints it");
  }
  return token;
}

void refuse_clear(const std::string& address) {
  throw Error(ErrorCode::InvalidArgument, "CUBIND_TOKEN_FILE",
              "the token would travel in clear: the address is tls://" + address +
                  " if the daemon has TLS; CUBIND_INSECURE_TOKEN=1 allows it in a network that you trust");
}

std::string pem_in(const std::filesystem::path& file) {
  return file.empty() ? "" : read_file(file, kMaxFileBytes);
}

std::shared_ptr<grpc::ChannelCredentials> credentials(bool is_tls, const ChannelSecrets& secrets) {
  if (!is_tls) {
    return grpc::InsecureChannelCredentials();
  }
  if (secrets.client_cert.empty() != secrets.client_key.empty()) {
    throw Error(ErrorCode::InvalidArgument, "CUBIND_CLIENT_CERT, CUBIND_CLIENT_KEY",
                "go together: one of them is not set");
  }
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = pem_in(secrets.ca_file);
  options.pem_cert_chain = pem_in(secrets.client_cert);
  options.pem_private_key = pem_in(secrets.client_key);
  return grpc::SslCredentials(options);
}

std::filesystem::path named_by(const char* variable) {
  const char* value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

}  // namespace

ChannelSecrets ChannelSecrets::from_environment() {
  return {.token_file = named_by("CUBIND_TOKEN_FILE"),
          .ca_file = named_by("CUBIND_CA_FILE"),
          .client_cert = named_by("CUBIND_CLIENT_CERT"),
          .client_key = named_by("CUBIND_CLIENT_KEY"),
          .token_in_clear = named_by("CUBIND_INSECURE_TOKEN") == "1",
          .role = named_by("CUBIND_ROLE").string()};
}

std::shared_ptr<grpc::Channel> open_channel(const std::string& address,
                                            const grpc::ChannelArguments& arguments,
                                            const ChannelSecrets& secrets) {
  check_address(address);
  const bool is_tls = address.starts_with(kTls);
  const std::string target = is_tls ? address.substr(kTls.size()) : address;
  std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>> interceptors;
  const bool is_unix = target.starts_with("unix:");
  if (!secrets.role.empty() && is_unix) {
    interceptors.push_back(std::make_unique<MetadataInterceptorFactory>("cubind-role", secrets.role));
  }
  if (!secrets.token_file.empty() && !is_unix) {
    if (!is_tls && !secrets.token_in_clear) {
      refuse_clear(address);
    }
    interceptors.push_back(std::make_unique<MetadataInterceptorFactory>(
        "authorization", "Bearer " + token_in(secrets.token_file)));
  }
  return grpc::experimental::CreateCustomChannelWithInterceptors(target, credentials(is_tls, secrets),
                                                                 arguments, std::move(interceptors));
}

}  // namespace cubind
