// The channel to a daemon: the one place that knows how a client shows who it is and whom it trusts.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/support/channel_arguments.h>

#include <filesystem>
#include <memory>
#include <string>

namespace cubind {

/// What a client needs besides the address. Empty: not used.
struct ChannelSecrets {
  std::filesystem::path token_file;   // holds "cubind_ID_SECRET"; for TCP
  std::filesystem::path ca_file;      // PEM, of the daemon's certificate; empty: the system's CAs
  std::filesystem::path client_cert;  // PEM, where the daemon asks for certificates too
  std::filesystem::path client_key;
  bool token_in_clear = false;  // the token may travel without TLS

  /// CUBIND_TOKEN_FILE, CUBIND_CA_FILE, CUBIND_CLIENT_CERT, CUBIND_CLIENT_KEY, CUBIND_INSECURE_TOKEN=1.
  static ChannelSecrets from_environment();
};

/// "tls://host:port" is TLS; "host:port" and "unix:///path" are not. Each call carries the token, but on a
/// Unix socket, where the daemon asks for none. The files are read now: a token that changes needs another
/// channel. Throws as read_file() does, and InvalidArgument for a file that holds no token, for a token that
/// would travel in clear, or if only one of certificate and key is named.
std::shared_ptr<grpc::Channel> open_channel(
    const std::string& address, const grpc::ChannelArguments& arguments,
    const ChannelSecrets& secrets = ChannelSecrets::from_environment());

}  // namespace cubind
