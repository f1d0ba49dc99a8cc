#include "base/framing.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <thread>

#include "base/error.hpp"
#include "tests/support/refusal_of.hpp"

namespace cubind {
namespace {

using test::code_of;

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::size_t kMax = 64u << 20;

void send_raw(const UniqueFd& fd, std::string_view bytes) {
  REQUIRE(::send(fd.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
}

}  // namespace

TEST_CASE("frames arrive whole and in order") {
  const auto [a, b] = make_socket_pair();
  write_frame(a.get(), "first");
  write_frame(a.get(), "");
  write_frame(a.get(), std::string("\0\xff", 2));
  CHECK(read_frame(b.get(), kMax) == "first");
  CHECK(read_frame(b.get(), kMax) == "");
  CHECK(read_frame(b.get(), kMax) == std::string("\0\xff", 2));
}

TEST_CASE("the length is four bytes little-endian") {
  const auto [a, b] = make_socket_pair();
  write_frame(a.get(), std::string(258, 'x'));
  char header[4];
  REQUIRE(::recv(b.get(), header, 4, MSG_WAITALL) == 4);
  CHECK(std::string_view(header, 4) == std::string_view("\x02\x01\0\0", 4));
}

TEST_CASE("a frame larger than the socket's buffer goes through") {
  auto [a, b] = make_socket_pair();
  const std::string big(20u << 20, 'y');
  std::thread writer([&a = a, &big] { write_frame(a.get(), big); });
  const auto got = read_frame(b.get(), kMax);
  writer.join();
  CHECK(got == big);
}

TEST_CASE("frames go through descriptors that do not block") {
  auto [a, b] = make_socket_pair();
  ::fcntl(a.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(b.get(), F_SETFL, O_NONBLOCK);
  const std::string big(4u << 20, 'z');
  std::thread writer([&a = a, &big] { write_frame(a.get(), big); });
  const auto got = read_frame(b.get(), kMax);
  writer.join();
  CHECK(got == big);
}

TEST_CASE("a peer that closes between frames is absent and not an error") {
  auto [a, b] = make_socket_pair();
  write_frame(a.get(), "last");
  a.reset();
  CHECK(read_frame(b.get(), kMax) == "last");
  CHECK(read_frame(b.get(), kMax) == std::nullopt);
}

TEST_CASE("a stream that ends inside a frame is data loss") {
  for (const std::string_view part : {std::string_view("\x05\0", 2), std::string_view("\x05\0\0\0ab", 6),
                                      std::string_view("\x05\0\0\0", 4)}) {
    auto [a, b] = make_socket_pair();
    send_raw(a, part);
    a.reset();
    CHECK(code_of([&b = b] { read_frame(b.get(), kMax); }) == ErrorCode::DataLoss);
  }
}

TEST_CASE("a frame above the limit is refused before it is allocated") {
  const auto [a, b] = make_socket_pair();
  send_raw(a, std::string_view("\xff\xff\xff\xff", 4));
  CHECK(code_of([&b = b] { read_frame(b.get(), kMax); }) == ErrorCode::ResourceExhausted);
  write_frame(b.get(), "12345");
  CHECK(read_frame(a.get(), 5) == "12345");
  write_frame(b.get(), "123456");
  CHECK(code_of([&a = a] { read_frame(a.get(), 5); }) == ErrorCode::ResourceExhausted);
}

TEST_CASE("a read ends at its deadline") {
  const auto [a, b] = make_socket_pair();
  const auto start = steady_clock::now();
  CHECK(code_of([&b = b, start] { read_frame_until(b.get(), kMax, start + milliseconds(50)); }) ==
        ErrorCode::DeadlineExceeded);
  CHECK(steady_clock::now() - start >= milliseconds(50));
  send_raw(a, std::string_view("\x05\0\0\0ab", 6));
  CHECK(code_of([&b = b] { read_frame_until(b.get(), kMax, steady_clock::now() + milliseconds(20)); }) ==
        ErrorCode::DeadlineExceeded);
}

TEST_CASE("a deadline that has passed still takes what is there") {
  const auto [a, b] = make_socket_pair();
  write_frame(a.get(), "x");
  CHECK(read_frame_until(b.get(), kMax, steady_clock::now() - milliseconds(1)) == "x");
}

TEST_CASE("a write to a peer that does not read ends at its deadline") {
  const auto [a, b] = make_socket_pair();
  const std::string big(20u << 20, 'y');
  CHECK(code_of([&a = a, &big] {
          write_frame_until(a.get(), big, steady_clock::now() + milliseconds(50));
        }) == ErrorCode::DeadlineExceeded);
}

TEST_CASE("a write to a peer that is gone is an error and no signal") {
  auto [a, b] = make_socket_pair();
  b.reset();
  CHECK(code_of([&a = a] { write_frame(a.get(), "x"); }) == ErrorCode::Unavailable);
}

TEST_CASE("waiting for bytes consumes none") {
  auto [a, b] = make_socket_pair();
  CHECK_FALSE(wait_readable(b.get(), steady_clock::now() + milliseconds(10)));
  write_frame(a.get(), "x");
  CHECK(wait_readable(b.get(), steady_clock::now() + milliseconds(10)));
  CHECK(read_frame(b.get(), kMax) == "x");
  a.reset();
  CHECK(wait_readable(b.get(), steady_clock::now() + milliseconds(10)));
}

TEST_CASE("signals interrupt neither reads nor writes") {
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = [](int) {};  // without SA_RESTART: system calls end with EINTR
  ::sigaction(SIGUSR1, &action, &before);
  auto [a, b] = make_socket_pair();
  const pthread_t reader = ::pthread_self();
  std::thread writer([&a = a, reader] {
    for (int i = 0; i < 20; ++i) {
      ::pthread_kill(reader, SIGUSR1);
      std::this_thread::sleep_for(milliseconds(2));
    }
    write_frame(a.get(), "after the storm");
  });
  const auto got = read_frame_until(b.get(), kMax, steady_clock::now() + std::chrono::seconds(20));
  writer.join();
  ::sigaction(SIGUSR1, &before, nullptr);
  CHECK(got == "after the storm");
}

}  // namespace cubind
