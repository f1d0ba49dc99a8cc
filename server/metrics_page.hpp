// The page that Prometheus reads: http://HOST:PORT/metrics.
#pragma once

#include <memory>
#include <string>

#include "server/service/context.hpp"

namespace cubind {

/// Serves the page on threads of its own until it is destroyed; the context's strands outlive it.
class MetricsPage {
 public:
  /// `listen` is host:port. Throws FailedPrecondition where it cannot be listened on.
  MetricsPage(const std::string& listen, ServiceContext& context);
  ~MetricsPage();
  MetricsPage(const MetricsPage&) = delete;
  MetricsPage& operator=(const MetricsPage&) = delete;

  int port() const;

 private:
  struct Server;
  std::unique_ptr<Server> server_;
};

}  // namespace cubind
