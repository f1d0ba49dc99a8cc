#include "server/flood_watch.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <grpc/grpc.h>
#include <grpc/support/alloc.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/json.hpp"
#include "base/log.hpp"
#include "base/unique_fd.hpp"

namespace cubind {
namespace {

using std::chrono::steady_clock;

constexpr std::int64_t kCallsBetweenLooks = 500;
constexpr std::chrono::milliseconds kShortestSleep{5};
constexpr std::chrono::seconds kBetweenWords{1};
constexpr int kSleepOfLook = 20;  // a look takes at most this part of the time

/// gRPC's page about itself, as an object. Empty if what it was to describe has ended.
Json page(char* text) {
  if (text == nullptr) {
    return Json::object();
  }
  const std::unique_ptr<char, decltype(&gpr_free)> held(text, &gpr_free);
  return Json::parse(text);
}

/// Its numbers are texts; it leaves out those that are zero.
std::int64_t number_in(const Json& object, const char* name) {
  const std::string text = object.value(name, "0");
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// "ipv4:10.0.0.1:40000"; empty for a connection of a Unix socket. `name` is "chttp2 PEER".
std::string tcp_peer(const std::string& name) {
  const auto at = name.find(" ipv");
  return at == std::string::npos ? "" : name.substr(at + 1);
}

/// The peers of one server's connections, by gRPC's number of the connection.
std::map<std::int64_t, std::string> tcp_connections(std::int64_t server) {
  std::map<std::int64_t, std::string> connections;
  std::int64_t next = 0;
  for (bool is_last = false; !is_last;) {
    const Json list = page(grpc_channelz_get_server_sockets(static_cast<std::intptr_t>(server),
                                                            static_cast<std::intptr_t>(next), 0));
    is_last = !list.contains("socketRef") || list.value("end", false);
    for (const Json& connection : list.value("socketRef", Json::array())) {
      const std::int64_t id = number_in(connection, "socketId");
      if (const std::string peer = tcp_peer(connection.value("name", "")); !peer.empty()) {
        connections.emplace(id, peer);
      }
      next = id + 1;
    }
  }
  return connections;
}

/// As gRPC names the other end of a connection; empty for all but TCP.
std::string peer_of(int connection) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (::getpeername(connection, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return "";
  }
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET) {
    const auto& ipv4 = reinterpret_cast<const sockaddr_in&>(address);
    ::inet_ntop(AF_INET, &ipv4.sin_addr, text.data(), text.size());
    return "ipv4:" + std::string(text.data()) + ":" + std::to_string(ntohs(ipv4.sin_port));
  }
  if (address.ss_family == AF_INET6) {
    const auto& ipv6 = reinterpret_cast<const sockaddr_in6&>(address);
    const std::string port = std::to_string(ntohs(ipv6.sin6_port));
    if (IN6_IS_ADDR_V4MAPPED(&ipv6.sin6_addr)) {
      ::inet_ntop(AF_INET, &ipv6.sin6_addr.s6_addr[12], text.data(), text.size());
      return "ipv4:" + std::string(text.data()) + ":" + port;
    }
    ::inet_ntop(AF_INET6, &ipv6.sin6_addr, text.data(), text.size());
    return "ipv6:%5B" + std::string(text.data()) + "%5D:" + port;
  }
  return "";
}

/// What the kernel has received and no one has read is dropped too: after shutdown() gRPC would read it.
void disconnect(int connection) {
  const sockaddr nowhere{.sa_family = AF_UNSPEC, .sa_data = {}};
  static_cast<void>(::connect(connection, &nowhere, sizeof(nowhere)));
}

/// gRPC has no call that ends a connection, so that it is found among this process's descriptors.
int disconnect_all(const std::set<std::string>& peers) {
  int ended = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    // The duplicate stays this connection while gRPC may close its own and open another.
    const UniqueFd connection(::fcntl(std::stoi(entry.path().filename()), F_DUPFD_CLOEXEC, 0));
    if (connection && peers.contains(peer_of(connection.get()))) {
      disconnect(connection.get());
      ++ended;
    }
  }
  return ended;
}

}  // namespace

/// gRPC asks it for a context on the thread that reads the call. It gives none.
class FloodWatch::Counter final : public grpc::ContextAllocator {
 public:
  explicit Counter(FloodWatch& watch) : watch_(watch) {}
  grpc::CallbackServerContext* NewCallbackServerContext() override {
    watch_.call_begins();
    return nullptr;
  }
  grpc::GenericCallbackServerContext* NewGenericCallbackServerContext() override {
    watch_.call_begins();
    return nullptr;
  }

 private:
  FloodWatch& watch_;
};

FloodWatch::FloodWatch(int most_calls)
    : most_calls_(most_calls), alarm_(kCallsBetweenLooks), thread_([this] { run(); }) {}

FloodWatch::~FloodWatch() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void FloodWatch::add_to(grpc::ServerBuilder& builder) {
  builder.SetContextAllocator(std::make_unique<Counter>(*this));
}

void FloodWatch::call_begins() {
  if (++begun_ >= alarm_ && !awake_.exchange(true)) {
    const std::lock_guard lock(mutex_);
    changed_.notify_one();
  }
}

void FloodWatch::run() {
  int ended = 0;
  auto last_word = steady_clock::now();
  std::unique_lock lock(mutex_);
  while (true) {
    const auto is_woken = [this] { return stopping_ || awake_ || begun_ >= alarm_; };
    if (ended > 0) {
      changed_.wait_until(lock, last_word + kBetweenWords, is_woken);  // the log names these too
    } else {
      changed_.wait(lock, is_woken);
    }
    if (stopping_) {
      return;
    }
    lock.unlock();
    const auto start = steady_clock::now();
    const std::int64_t begun = begun_;
    ended += end_floods();
    if (ended > 0 && start - last_word >= kBetweenWords) {
      log_warning(std::to_string(std::exchange(ended, 0)) + " connections were ended: each had more than " +
                  std::to_string(most_calls_) + " calls at a time, or reset as many within a second");
      last_word = start;
    }
    const auto pause =
        std::max<steady_clock::duration>(kShortestSleep, kSleepOfLook * (steady_clock::now() - start));
    lock.lock();
    changed_.wait_for(lock, pause, [this] { return stopping_; });
    alarm_ = begun + kCallsBetweenLooks;  // what began meanwhile was not looked at
    awake_ = false;
  }
}

int FloodWatch::end_floods() try {
  const std::set<std::string> peers = flooding_peers();
  return peers.empty() ? 0 : disconnect_all(peers);
} catch (const std::exception& fault) {  // no descriptor is left: the next look may have one
  log_debug(std::string("connections are not looked at: ") + fault.what());
  return 0;
}

std::set<std::string> FloodWatch::flooding_peers() {
  const auto now = steady_clock::now();
  if (now - second_ > std::chrono::seconds(1)) {
    second_ = now;
    at_second_ = std::exchange(seen_, {});
  }
  std::set<std::string> peers;
  const Json list = page(grpc_channelz_get_servers(0));
  for (const Json& server : list.value("server", Json::array())) {
    for (const auto& [id, peer] :
         tcp_connections(number_in(server.value("ref", Json::object()), "serverId"))) {
      if (floods(id)) {
        peers.insert(peer);
      }
    }
  }
  return peers;
}

bool FloodWatch::floods(std::int64_t connection) {
  const Json found = page(grpc_channelz_get_socket(static_cast<std::intptr_t>(connection)));
  const Json calls = found.value("socket", Json::object()).value("data", Json::object());
  const std::int64_t reset = number_in(calls, "streamsFailed");
  const std::int64_t open = number_in(calls, "streamsStarted") - number_in(calls, "streamsSucceeded") - reset;
  seen_[connection] = reset;
  const auto before = at_second_.find(connection);
  const std::int64_t just_reset = reset - (before == at_second_.end() ? 0 : before->second);
  return open > most_calls_ + most_calls_ / 2 || just_reset > most_calls_;
}

}  // namespace cubind
