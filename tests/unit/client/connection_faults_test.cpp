#include "client/connection_faults.hpp"

#include <catch2/catch.hpp>

namespace cubind {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

/// What is said of a connection that gRPC gave up with these words.
std::string unavailable(const std::string& words) {
  return error_of({grpc::StatusCode::UNAVAILABLE, words}, "unix:///run/c.sock").what();
}

TEST_CASE("a missing a dead and a foreign socket have words of their own with how to start a daemon") {
  const std::string failed = "failed to connect to all addresses; last error: UNKNOWN: unix:/run/c.sock: ";
  for (const auto& [words, told] :
       {std::pair("No such file or directory", "(there is no such socket)"),
        std::pair("Connection refused", "(nothing listens there)"),
        std::pair("Permission denied", "(the socket is another user's, who can open one to a group")}) {
    CHECK_THAT(unavailable(failed + words),
               StartsWith("unix:///run/c.sock: no daemon answers there " + std::string(told)) &&
                   Contains(". Start one with `cubind`"));
  }
}

TEST_CASE("a daemon that does not answer is not taken for a missing one") {
  for (const char* words : {"failed to connect to all addresses; last error: UNKNOWN: unix:/run/c.sock: "
                            "connection attempt timed out "
                            "before receiving SETTINGS frame",
                            "keepalive watchdog timeout", "Stream removed (ping timeout)"}) {
    CHECK_THAT(unavailable(words),
               Contains("does not answer") && Contains("kill -CONT") && !Contains("Start one"));
  }
}

TEST_CASE("a mistyped host another service and an ended daemon each get their words and what to do") {
  CHECK_THAT(unavailable("DNS resolution failed for nohost:7600: C-ares status is not ARES_SUCCESS"),
             Contains("no such host: name one of DNS or /etc/hosts as host:port"));
  CHECK_THAT(
      unavailable("failed to connect to all addresses; last error: INTERNAL: Trying to connect an http1.x "
                  "server"),
      Contains("another service answers there"));
  CHECK_THAT(unavailable("Socket closed"),
             Contains("the daemon ended during the call") && Contains("cubindctl jobs"));
}

TEST_CASE("a connection by TCP that is closed at once is taken for one to a daemon with TLS") {
  for (const char* words : {"Endpoint read failed", "Socket closed", "recvmsg:Connection reset by peer"}) {
    const grpc::Status status(
        grpc::StatusCode::UNAVAILABLE,
        std::string("failed to connect to all addresses; last error: UNKNOWN: ipv4:10.0.0.7:7600: ") + words);
    CHECK_THAT(error_of(status, "gpu7:7600").what(),
               Contains("the address tls://HOST:PORT") && !Contains("Start one"));
    CHECK_THAT(error_of(status, "tls://gpu7:7600").what(), Contains("CUBIND_CLIENT_CERT"));
    CHECK_THAT(error_of(status, "unix:///run/c.sock").what(), !Contains("tls://"));
  }
}

TEST_CASE("the words of the daemon stay as they are") {
  CHECK(unavailable("job 7 compiles one: ask again") == "job 7 compiles one: ask again");
  const std::string server = "store: PostgreSQL: connection to server at \"db\" failed: Connection refused";
  CHECK(unavailable(server) == server);
  const std::string kernel = "kernel handshake: no candidate for N=1 on h100 has a compiled artifact yet";
  CHECK(unavailable(kernel) == kernel);
  const Error late = error_of({grpc::StatusCode::DEADLINE_EXCEEDED, "the job waits for a GPU"}, "h:1");
  CHECK(std::string(late.what()) == "the job waits for a GPU");
  CHECK_THAT(error_of({grpc::StatusCode::DEADLINE_EXCEEDED, "Deadline Exceeded"}, "h:1").what(),
             StartsWith("h:1: no answer in time"));
}

std::string refusal(const std::string& address) {
  try {
    check_address(address);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("an address that gRPC would choke on is refused with what would be right") {
  const std::string longest = "unix:///" + std::string(106, 'x');
  CHECK(refusal(longest).empty());
  CHECK(refusal("localhost:7600").empty());
  CHECK_THAT(refusal(longest + "x"), Contains("the path has 108 bytes, a socket's at most 107"));
  CHECK_THAT(refusal("http://localhost:7600"), Contains("is a web address") && Contains("tls://host:port"));
  CHECK(refusal("tls://gpu7:7600").empty());
  CHECK_THAT(refusal("localhost"), Contains("neither unix:///path/to/socket nor host:port"));
}

TEST_CASE("what a daemon says hides and reorders nothing") {
  CHECK(error_of({grpc::StatusCode::NOT_FOUND, "no \u202ekernel"}, "h:1").what() ==
        std::string("no \\u202ekernel"));
}

}  // namespace
}  // namespace cubind
