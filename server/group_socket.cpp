#include "server/group_socket.hpp"

#include <grpcpp/security/auth_metadata_processor.h>
#include <grpcpp/security/server_credentials.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <mutex>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "server/access/gate.hpp"

namespace cubind {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostMembers = 64;
constexpr int kQueue = 512;
constexpr int kPauseMs = 100;  // where the process has no descriptor left

/// Users of the group have to pass each folder above the socket.
void require_reachable(const fs::path& socket, const SocketGroup& group) {
  for (fs::path folder = socket.parent_path();; folder = folder.parent_path()) {
    struct stat info {};
    if (::stat(folder.c_str(), &info) != 0) {
      throw system_error(folder.string(), "stat", errno);
    }
    const mode_t needed = info.st_gid == group.id ? S_IXGRP : S_IXOTH;
    if ((info.st_mode & needed) == 0) {
      throw Error(ErrorCode::FailedPrecondition, "--socket-group " + group.name,
                  "its members cannot enter the folder " + folder.string() +
                      ": chmod +x it, or name a socket elsewhere (--socket /run/cubind/cubind.sock)");
    }
    if (folder == folder.root_path()) {
      return;
    }
  }
}

void give_to_group(const fs::path& socket, const SocketGroup& group) {
  if (::chown(socket.c_str(), static_cast<uid_t>(-1), group.id) != 0) {
    throw Error(ErrorCode::FailedPrecondition, "--socket-group " + group.name,
                "the daemon's " + user_text(::geteuid()) +
                    " is not in this group and cannot give it the socket: usermod -aG " + group.name);
  }
  if (::chmod(socket.c_str(), 0660) != 0) {
    throw system_error(socket.string(), "chmod", errno);
  }
}

/// Of calls that never pass.
class Refusal final : public grpc::AuthMetadataProcessor {
 public:
  explicit Refusal(grpc::Status status) : status_(std::move(status)) {}
  bool IsBlocking() const override { return false; }
  grpc::Status Process(const InputMetadata&, grpc::AuthContext*, OutputMetadata*, OutputMetadata*) override {
    return status_;
  }

 private:
  const grpc::Status status_;
};

std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_with(
    grpc::ServerBuilder& builder, const std::shared_ptr<grpc::AuthMetadataProcessor>& processor) {
  using Type = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  // Local credentials send nothing, so that clients need not know of them, and take a processor.
  const auto credentials =
      processor ? grpc::experimental::LocalServerCredentials(UDS) : grpc::InsecureServerCredentials();
  if (processor) {
    credentials->SetAuthMetadataProcessor(processor);
  }
  return builder.experimental().AddExternalConnectionAcceptor(Type::FROM_FD, credentials);
}

}  // namespace

/// Names the user in the authentication context of each of the user's connections.
class GroupSocket::Identity final : public grpc::AuthMetadataProcessor {
 public:
  /// Before the first connection.
  void set(uid_t user) { user_ = std::to_string(user); }
  bool IsBlocking() const override { return false; }
  grpc::Status Process(const InputMetadata&, grpc::AuthContext* connection, OutputMetadata*,
                       OutputMetadata*) override {
    const std::lock_guard lock(mutex_);  // calls of one connection run at the same time
    if (connection->FindPropertyValues(kSocketUser).empty()) {
      connection->AddProperty(kSocketUser, user_);
    }
    return grpc::Status::OK;
  }

 private:
  std::mutex mutex_;
  std::string user_;
};

GroupSocket::GroupSocket(fs::path socket, SocketGroup group)
    : path_(std::move(socket)), group_(std::move(group)) {}

GroupSocket::~GroupSocket() {
  if (thread_.joinable()) {
    ::eventfd_write(stop_.get(), 1);
    thread_.join();
  }
}

void GroupSocket::add_to(grpc::ServerBuilder& builder) {
  const auto refuse = [&](grpc::StatusCode code, const std::string& why) {
    return acceptor_with(builder, std::make_shared<Refusal>(grpc::Status(code, path_.string() + ": " + why)));
  };
  owner_ = acceptor_with(builder, nullptr);
  stranger_ = refuse(grpc::StatusCode::PERMISSION_DENIED,
                     "this user is neither the daemon's own nor in the group " + group_.name +
                         ": an administrator adds the user (usermod -aG " + group_.name + " USER)");
  surplus_ = refuse(grpc::StatusCode::RESOURCE_EXHAUSTED,
                    std::to_string(kMostMembers) + " other users of the group " + group_.name +
                        " have connected since the daemon's start, and it tells no more apart: use --listen "
                        "and tokens (docs/team.md)");
  for (std::size_t i = 0; i < kMostMembers; ++i) {
    auto identity = std::make_shared<Identity>();
    members_.push_back({identity, acceptor_with(builder, identity)});
  }
}

void GroupSocket::open() {
  require_reachable(path_, group_);
  listener_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  stop_.reset(::eventfd(0, EFD_CLOEXEC));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path_.string().copy(address.sun_path, sizeof(address.sun_path) - 1);
  if (!listener_ || !stop_ ||
      ::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    throw system_error(path_.string(), "bind", errno);
  }
  give_to_group(path_, group_);
  if (::listen(listener_.get(), kQueue) != 0) {
    throw system_error(path_.string(), "listen", errno);
  }
  thread_ = std::thread([this] { accept_all(); });
}

void GroupSocket::accept_all() {
  std::array<pollfd, 2> waits{pollfd{stop_.get(), POLLIN, 0}, pollfd{listener_.get(), POLLIN, 0}};
  while (true) {
    ::poll(waits.data(), waits.size(), -1);
    if (waits[0].revents != 0) {
      return;
    }
    UniqueFd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection) {
      const bool is_short = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
      ::poll(waits.data(), is_short ? 1 : 0, is_short ? kPauseMs : 0);
      continue;
    }
    grpc::experimental::ExternalConnectionAcceptor& acceptor = acceptor_for(connection.get());
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters handed;
    handed.listener_fd = listener_.get();
    handed.fd = connection.release();
    acceptor.HandleNewConnection(&handed);
  }
}

grpc::experimental::ExternalConnectionAcceptor& GroupSocket::acceptor_for(int connection) {
  const auto peer = peer_of_socket(connection);
  if (peer && (peer->user == ::geteuid() || peer->user == 0)) {
    return *owner_;
  }
  if (!peer || !peer->is_in(group_.id)) {
    return *stranger_;
  }
  const auto known = taken_.find(peer->user);
  const std::size_t place = known == taken_.end() ? taken_.size() : known->second;
  if (place == members_.size()) {
    return *surplus_;
  }
  if (known == taken_.end()) {
    members_[place].identity->set(peer->user);
    taken_.emplace(peer->user, place);
    log_info("the socket's callers: " + user_text(peer->user) + " of the group " + group_.name + " is " +
             std::string(role_name(group_.role)));
  }
  return *members_[place].acceptor;
}

}  // namespace cubind
