// A request to a web server of this machine.
#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>

#include <array>
#include <string>

#include "base/unique_fd.hpp"

namespace cubind::test {

/// A connection to the port that has sent nothing. With SOCK_NONBLOCK it may still be on its way.
inline UniqueFd http_connection(int port, int flags = 0) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | flags, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 && flags == 0) {
    socket.reset();
  }
  return socket;
}

/// The whole reply, with its headers; empty: nothing listens at the port.
inline std::string http_reply(int port, const std::string& target, const std::string& host = "localhost",
                              const std::string& method = "GET") {
  const UniqueFd socket = http_connection(port);
  const std::string request = method + " " + target + " HTTP/1.0\r\nHost: " + host + "\r\n\r\n";
  if (::send(socket.get(), request.data(), request.size(), 0) != static_cast<ssize_t>(request.size())) {
    return "";
  }
  std::string reply;
  std::array<char, 4096> part{};
  for (ssize_t size = 0; (size = ::recv(socket.get(), part.data(), part.size(), 0)) > 0;) {
    reply.append(part.data(), static_cast<std::size_t>(size));
  }
  return reply;
}

}  // namespace cubind::test
