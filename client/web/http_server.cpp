#include "client/web/http_server.hpp"

#include <civetweb.h>

#include <array>
#include <exception>
#include <functional>
#include <semaphore>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/loopback.hpp"
#include "base/text.hpp"

namespace cubind::web {
namespace {

// A connection has one of the library's threads until it has sent its request: many of them, so that those
// that send nothing leave some for others. Few of them make pages at a time.
constexpr const char* kMostConnections = "512";
constexpr std::ptrdiff_t kMostHandled = 8;

std::string decoded(const std::string& text) {
  std::string result(text.size() + 1, '\0');
  const int length = mg_url_decode(text.data(), static_cast<int>(text.size()), result.data(),
                                   static_cast<int>(result.size()), /*is_form_url_encoded=*/1);
  result.resize(length < 0 ? 0 : static_cast<std::size_t>(length));
  return result;
}

// What If-None-Match names: the same for the same body.
std::string tag_of(const Response& response) {
  return '"' + std::to_string(std::hash<std::string>()(response.body)) + '"';
}

// A proxy that compresses marks the tag: W/"1".
bool is_known(const char* tags, std::string_view tag) {
  return tags != nullptr && std::string_view(tags).find(tag) != std::string_view::npos;
}

std::string headers_of(const Response& response, const std::string& tag) {
  return "HTTP/1.1 " + std::to_string(response.status) + (response.status == 200 ? " OK" : " ") +
         "\r\nETag: " + tag + "\r\nContent-Type: " + response.type +
         "\r\nContent-Length: " + std::to_string(response.body.size()) + "\r\nContent-Security-Policy: " +
         (response.policy.empty() ? "default-src 'none'" : response.policy) +
         "; frame-ancestors 'none'\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"
         "Cross-Origin-Resource-Policy: same-origin\r\nCache-Control: no-store\r\n" +
         (response.refresh_s > 0 ? "Refresh: " + std::to_string(response.refresh_s) + "\r\n" : "") +
         "Connection: close\r\n\r\n";
}

Response refusal(int status, const std::string& why) {
  return {status, "text/plain; charset=utf-8", "", why + "\n", 0};
}

}  // namespace

std::map<std::string, std::string> parse_query(const std::string& text) {
  std::map<std::string, std::string> query;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('&', at), text.size());
    const std::size_t equals = std::min(text.find('=', at), end);
    query[decoded(text.substr(at, equals - at))] =
        equals == end ? "" : decoded(text.substr(equals + 1, end - equals - 1));
    at = end + 1;
  }
  return query;
}

std::string url_encoded(const std::string& text) {
  std::string result(3 * text.size() + 1, '\0');
  result.resize(static_cast<std::size_t>(mg_url_encode(text.c_str(), result.data(), result.size())));
  return result;
}

struct HttpServer::Server {
  Handler handler;
  std::counting_semaphore<kMostHandled> room{kMostHandled};
  mg_context* context = nullptr;

  explicit Server(Handler to) : handler(std::move(to)) {}
  ~Server() {
    if (context != nullptr) {
      mg_stop(context);
    }
  }

  Response answer(mg_connection* connection, const mg_request_info& info) const {
    const char* host = mg_get_header(connection, "Host");
    if (host == nullptr || !is_loopback(host)) {
      return refusal(403,
                     "the Host of the request is not this machine: a proxy sends 127.0.0.1 (docs/web.md)");
    }
    const std::string method = info.request_method;
    if (method != "GET" && method != "HEAD") {
      return refusal(405, "the pages are read only: GET");
    }
    try {
      return handler({info.local_uri, parse_query(info.query_string == nullptr ? "" : info.query_string)});
    } catch (const std::exception& fault) {
      log_warning(std::string("a page failed: ") + fault.what());
      return refusal(500, fault.what());
    }
  }

  // Called by the library, which is written in C: nothing may be thrown through it.
  static int handle(mg_connection* connection, void* self) noexcept {
    const mg_request_info& info = *mg_get_request_info(connection);
    auto& server = *static_cast<Server*>(self);
    server.room.acquire();
    Response response = server.answer(connection, info);
    server.room.release();
    const std::string tag = tag_of(response);
    const char* known = mg_get_header(connection, "If-None-Match");
    if (response.status == 200 && is_known(known, tag)) {
      response.status = 304;
    }
    const std::string headers = headers_of(response, tag);
    mg_write(connection, headers.data(), headers.size());
    if (response.status != 304 && std::string_view(info.request_method) != "HEAD") {
      mg_write(connection, response.body.data(), response.body.size());
    }
    return response.status;
  }
};

HttpServer::HttpServer(const std::string& listen, Handler handler)
    : server_(std::make_unique<Server>(std::move(handler))) {
  const std::string address = loopback_address("--web", listen);
  std::array<const char*, 9> options{
      "listening_ports", address.c_str(), "num_threads", kMostConnections, "request_timeout_ms",
      "10000",           "tcp_nodelay",   "1",           nullptr};
  const mg_callbacks callbacks{};
  server_->context = mg_start(&callbacks, nullptr, options.data());
  if (server_->context == nullptr) {
    throw Error(ErrorCode::FailedPrecondition, "--web " + listen,
                "cannot be listened on: another process may have the port");
  }
  mg_set_request_handler(server_->context, "/", &Server::handle, server_.get());
}

HttpServer::~HttpServer() = default;

int HttpServer::port() const {
  mg_server_port port{};
  return mg_get_server_ports(server_->context, 1, &port) == 1 ? port.port : 0;
}

}  // namespace cubind::web
