// The Unix socket of a daemon that a group may use too: the kernel says which user has connected.
#pragma once

#include <grpcpp/grpcpp.h>

#include <filesystem>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "base/unique_fd.hpp"
#include "server/access/socket_group.hpp"

namespace cubind {

/// Accepts the connections itself and hands them to gRPC: those of the daemon's own user and of root as they
/// are, those of a member of the group with the property kSocketUser, which each call finds in its
/// authentication context. A call of any other user ends with PERMISSION_DENIED.
class GroupSocket {
 public:
  GroupSocket(std::filesystem::path socket, SocketGroup group);
  /// Takes no more connections.
  ~GroupSocket();
  GroupSocket(const GroupSocket&) = delete;
  GroupSocket& operator=(const GroupSocket&) = delete;

  /// Before the server is built.
  void add_to(grpc::ServerBuilder& builder);
  /// Binds the socket with mode 0660 and takes connections; once the server is built. Throws
  /// FailedPrecondition if members could not reach it, or the daemon's user may not give it to the group.
  void open();

 private:
  using Acceptor = std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor>;
  class Identity;
  /// gRPC tells connections apart by what accepted them, and takes no new acceptors while it serves.
  struct Member {
    std::shared_ptr<Identity> identity;
    Acceptor acceptor;
  };

  void accept_all();
  grpc::experimental::ExternalConnectionAcceptor& acceptor_for(int connection);

  const std::filesystem::path path_;
  const SocketGroup group_;
  Acceptor owner_, stranger_, surplus_;
  std::vector<Member> members_;
  std::map<uid_t, std::size_t> taken_;  // of members_, by user; on the accepting thread
  UniqueFd listener_, stop_;
  std::thread thread_;
};

}  // namespace cubind
