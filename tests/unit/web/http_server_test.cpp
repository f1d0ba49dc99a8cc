#include "client/web/http_server.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <vector>

#include "base/error.hpp"
#include "tests/support/http_reply.hpp"

namespace cubind::test {
namespace {

using Catch::Contains;
using web::HttpServer, web::parse_query, web::Request, web::Response, web::url_encoded;

struct Served {
  HttpServer server{
      "0", [](const Request& request) -> Response {
        if (request.path == "/fault") {
          throw Error(ErrorCode::Internal, "", "a fault");
        }
        return {200, "text/plain", "",
                request.path + "|" + (request.query.contains("a b") ? request.query.at("a b") : ""), 0};
      }};
  std::string get(const std::string& target, const std::string& host = "localhost:1",
                  const std::string& method = "GET") const {
    return http_reply(server.port(), target, host, method);
  }
};

}  // namespace

TEST_CASE_METHOD(Served, "a path and its query reach the handler decoded") {
  CHECK_THAT(get("/jobs%20x?a+b=1%3C2&c"), Contains("200 OK") && Contains("\r\n\r\n/jobs x|1<2"));
}

TEST_CASE_METHOD(Served, "every reply forbids frames and foreign content") {
  CHECK_THAT(get("/"), Contains("Content-Security-Policy: default-src 'none'; frame-ancestors 'none'") &&
                           Contains("X-Content-Type-Options: nosniff"));
}

TEST_CASE_METHOD(Served, "a page that the caller has is not sent again") {
  const std::string page = get("/jobs");
  const std::size_t at = page.find("ETag: ") + 6;
  const std::string known = "localhost\r\nIf-None-Match: " + page.substr(at, page.find('\r', at) - at);
  CHECK_THAT(get("/jobs", known), Contains(" 304 ") && Contains("Length: 6\r") && !Contains("/jobs|"));
  CHECK_THAT(get("/kernels", known), Contains("200 OK") && Contains("/kernels|"));
  const std::string tag = page.substr(at, page.find('\r', at) - at);
  CHECK_THAT(get("/jobs", "localhost\r\nIf-None-Match: \"1\", W/" + tag), Contains(" 304 "));
}

TEST_CASE_METHOD(Served, "a request under another host's name is refused") {
  CHECK_THAT(get("/", "evil.example"), Contains(" 403 ") && !Contains("/|"));
}

TEST_CASE_METHOD(Served, "only reading is allowed and a fault ends its request alone") {
  CHECK_THAT(get("/", "localhost", "POST"), Contains(" 405 "));
  CHECK_THAT(get("/fault"), Contains(" 500 ") && Contains("a fault"));
  CHECK_THAT(get("/", "[::1]"), Contains("200 OK"));
}

TEST_CASE_METHOD(Served, "a page is served while 300 connections send nothing") {
  std::vector<UniqueFd> silent(300);
  std::ranges::generate(silent, [&] { return http_connection(server.port(), SOCK_NONBLOCK); });
  CHECK_THAT(get("/"), Contains("200 OK"));
  char byte = 0;
  CHECK(::recv(silent.front().get(), &byte, 1, 0) == -1);  // 0: its end made room for the page
}

TEST_CASE_METHOD(Served, "a port that is taken is named") {
  const std::string port = std::to_string(server.port());
  CHECK_THROWS_WITH(HttpServer(port, {}), Contains("--web " + port) && Contains("another process"));
}

TEST_CASE("a value that is encoded is decoded to itself") {
  const std::string text = "a&b=c +%<\"\xc3\xa9";
  CHECK(parse_query("x=" + url_encoded(text)).at("x") == text);
}

}  // namespace cubind::test
