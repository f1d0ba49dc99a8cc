// The channel to a daemon. Only here are a client's credentials and the daemons that it trusts handled.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/support/channel_arguments.h>

#include <filesystem>
#include <memory>
#include <string>

namespace cubind {

/// A client's credentials. Empty members are not used.
struct ChannelSecrets {
  std::filesystem::path token_file;   // holds "cubind_ID_SECRET"; for TCP
  std::filesystem::path ca_file;      // PEM, of the daemon's certificate; empty: the system's CAs
  std::filesystem::path client_cert;  // PEM, if the daemon asks for client certificates
  std::filesystem::path client_key;
  bool token_in_clear = false;  // the token may travel without TLS
  std::string role;  // "reader": on a Unix socket, a daemon grants no other role; empty: what it grants

  /// CUBIND_TOKEN_FILE, CUBIND_CA_FILE, CUBIND_CLIENT_CERT, CUBIND_CLIENT_KEY, CUBIND_INSECURE_TOKEN=1,
  /// CUBIND_ROLE.
  static ChannelSecrets from_environment();
};

/// "tls://host:port" uses TLS; "host:port" and "unix:///path" do not. Each call carries the token, except on
/// a Unix socket, where the daemon asks for none. The files are read now: a changed token needs a new
/// channel. Throws like read_file() and check_address(), and InvalidArgument if the file contains no token,
/// if the token would travel in clear, or if only one of certificate and key is named.
std::shared_ptr<grpc::Channel> open_channel(
    const std::string& address, const grpc::ChannelArguments& arguments,
    const ChannelSecrets& secrets = ChannelSecrets::from_environment());

}  // namespace cubind
