// Clients of TCP that send more calls than HTTP/2 allows them, in frames of their own.
#include <catch2/catch.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <future>
#include <string>
#include <thread>

#include "base/unique_fd.hpp"
#include "tests/service/server/team_daemon.hpp"

namespace cubind::test {
namespace {

std::string big_endian(std::uint32_t number, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) {
    text += static_cast<char>(number >> (8 * i));
  }
  return text;
}

std::string frame(char kind, char flags, std::uint32_t stream, const std::string& payload) {
  return big_endian(static_cast<std::uint32_t>(payload.size()), 3) + kind + flags + big_endian(stream, 4) +
         payload;
}

/// HPACK's literal that neither end remembers; both texts below 127 bytes.
std::string field(const std::string& name, const std::string& value) {
  return std::string(1, '\0') + static_cast<char>(name.size()) + name + static_cast<char>(value.size()) +
         value;
}

std::string begun_call(const std::string& name, const std::string& token, std::uint32_t stream) {
  return frame(1, 4, stream,
               field(":method", "POST") + field(":scheme", "http") +
                   field(":path", "/cubind.v1.Cubind/" + name) + field(":authority", "localhost") +
                   field("te", "trailers") + field("content-type", "application/grpc") +
                   field("authorization", "Bearer " + token));
}

std::string reset_call(const std::string& token, std::uint32_t stream) {
  return begun_call("ListKernels", token, stream) + frame(0, 1, stream, std::string(5, '\0')) +
         frame(3, 0, stream, big_endian(8, 4));
}

/// A connection that acknowledges none of the daemon's settings.
class RawConnection {
 public:
  explicit RawConnection(int port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
    REQUIRE(send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, "")));
  }
  /// False: the daemon has ended the connection. Reads what has come.
  bool send(const std::string& bytes) {
    std::size_t sent = 0;
    while (sent < bytes.size()) {
      const ssize_t count = ::send(socket_.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (count < 0) {
        return false;
      }
      sent += static_cast<std::size_t>(count);
    }
    return is_open();
  }
  bool is_open() {
    std::array<char, 65536> read{};
    ssize_t count = 1;
    while (count > 0) {
      count = ::recv(socket_.get(), read.data(), read.size(), MSG_DONTWAIT);
    }
    return count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  }

 private:
  UniqueFd socket_;
};

/// The text of a token whose holder floods, and another caller's.
struct Flooded : TeamDaemon {
  std::string hostile = issue({.name = "hostile", .roles = {CallerRole::Admin}});
  std::string other = issue({.name = "other", .roles = {CallerRole::Reader}});
};

}  // namespace

TEST_CASE("a connection that resets calls without end is ended and others are answered") {
  Flooded daemon;
  for (int i = 0; i < 3; ++i) {
    RawConnection connection(daemon.port());
    std::uint32_t stream = 1;
    while (stream < 2'000'000) {
      std::string batch;
      for (int call = 0; call < 500; ++call, stream += 2) {
        batch += reset_call(daemon.hostile, stream);
      }
      if (!connection.send(batch)) {
        break;
      }
    }
    CHECK(stream < 2'000'000);
    CHECK(daemon.call("ListKernels", daemon.other).ok());
  }
}

TEST_CASE("a connection that begins more calls than it was allowed is ended and others are answered") {
  Flooded daemon;
  RawConnection connection(daemon.port());
  for (std::uint32_t stream = 1; stream < 2 * 3000; stream += 2) {
    connection.send(begun_call("ImportTable", daemon.hostile, stream));
  }
  DaemonFixture::eventually([&] { return !connection.is_open(); });
  CHECK(daemon.call("ListKernels", daemon.other).ok());
}

TEST_CASE("a connection with as many calls as it may have goes on") {
  Flooded daemon;
  RawConnection connection(daemon.port());
  for (std::uint32_t stream = 1; stream < 2 * 1000; stream += 2) {
    REQUIRE(connection.send(begun_call("ImportTable", daemon.hostile, stream)));
  }
  for (std::uint32_t stream = 1; stream < 2 * 1000; stream += 2) {
    REQUIRE(connection.send(frame(3, 0, stream, big_endian(8, 4))));
  }
  std::this_thread::sleep_for(std::chrono::seconds(1));
  CHECK(connection.is_open());
}

TEST_CASE("a call whose caller has withdrawn before its turn does nothing") {
  DaemonFixture daemon;
  v1::TuneRequest request = tune_vector_add({4096});
  request.set_detach(true);
  daemon.tune(request);
  v1::CancelJobRequest cancel;
  cancel.set_id(daemon.jobs().at(0).id());
  std::promise<void> others_work;
  daemon.context().jobs.post([held = others_work.get_future().share()] { held.wait(); });
  grpc::ClientContext context;
  std::thread caller([&] {
    v1::CancelJobReply reply;
    daemon.stub().CancelJob(&context, cancel, &reply);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  context.TryCancel();
  caller.join();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  others_work.set_value();
  CHECK(daemon.jobs().size() == 1);
}

}  // namespace cubind::test
