// A request to a web server of this machine.
#pragma once

#include <arpa/inet.h>
#include <sys/socket.h>

#include <array>
#include <string>

#include "base/unique_fd.hpp"

namespace cubind::test {

/// The whole reply, with its headers; empty: nothing listens at the port.
inline std::string http_reply(int port, const std::string& target, const std::string& host = "localhost",
                              const std::string& method = "GET") {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const std::string request = method + " " + target + " HTTP/1.0\r\nHost: " + host + "\r\n\r\n";
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 ||
      ::send(socket.get(), request.data(), request.size(), 0) != static_cast<ssize_t>(request.size())) {
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
