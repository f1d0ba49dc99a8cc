// A web server for pages that are read only: GET on a loopback address. Everything that needs CivetWeb is
// behind this header.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

namespace cubind::web {

struct Request {
  std::string path;                          // "/jobs"
  std::map<std::string, std::string> query;  // decoded
};

struct Response {
  int status = 200;
  std::string type = "text/html; charset=utf-8";
  std::string policy;  // Content-Security-Policy; empty: nothing may be loaded
  std::string body;
  unsigned refresh_s = 0;  // the browser asks again after so long; 0: it does not
};

/// "jobs?state=done%20now" as it stands in an address's query, decoded; a later value of a name replaces an
/// earlier one.
std::map<std::string, std::string> parse_query(const std::string& text);
/// A name or value of a query, encoded.
std::string url_encoded(const std::string& text);

/// Serves until it is destroyed, also while up to 500 connections send no request; each is closed after ten
/// seconds. A caller that names the ETag of what it has gets status 304 and no body, as long as the answer is
/// the same.
class HttpServer {
 public:
  using Handler = std::function<Response(const Request&)>;

  /// `listen`: "[HOST:]PORT", HOST 127.0.0.1 (default), localhost or [::1]; port 0: a free one. `handler` is
  /// called on many threads; what it throws is a page with status 500. Requests whose Host is no name of the
  /// loopback are refused: a page of another site would otherwise reach the server under a name of its own
  /// (DNS rebinding). Throws Error(InvalidArgument) for another host, Error(FailedPrecondition) if the port
  /// is taken.
  HttpServer(const std::string& listen, Handler handler);
  ~HttpServer();

  int port() const;

 private:
  struct Server;
  std::unique_ptr<Server> server_;
};

}  // namespace cubind::web
