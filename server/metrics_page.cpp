#include "server/metrics_page.hpp"

#include <prometheus/collectable.h>
#include <prometheus/exposer.h>

#include <exception>

#include "base/error.hpp"
#include "base/log.hpp"
#include "server/metric_families.hpp"

namespace cubind {
namespace {

class State final : public prometheus::Collectable {
 public:
  explicit State(ServiceContext& context) : context_(context) {}

  /// The web server is written in C: no exception may reach it. Prometheus takes the empty page for a gap.
  std::vector<prometheus::MetricFamily> Collect() const override {
    try {
      return metric_families(context_);
    } catch (const std::exception& fault) {
      log_warning(std::string("the metrics were not read: ") + fault.what());
      return {};
    }
  }

 private:
  ServiceContext& context_;
};

}  // namespace

struct MetricsPage::Server {
  Server(const std::string& listen, ServiceContext& context)
      : state(std::make_shared<State>(context)), exposer(listen) {
    exposer.RegisterCollectable(state);
  }
  const std::shared_ptr<State> state;  // the exposer holds it weakly
  prometheus::Exposer exposer;
};

MetricsPage::MetricsPage(const std::string& listen, ServiceContext& context) {
  try {
    server_ = std::make_unique<Server>(listen, context);
  } catch (const std::exception& fault) {
    throw Error(
        ErrorCode::FailedPrecondition, "--metrics " + listen,
        "cannot be listened on: another process may have the port (" + std::string(fault.what()) + ")");
  }
  log_info("metrics are at http://" + listen.substr(0, listen.rfind(':') + 1) + std::to_string(port()) +
           "/metrics");
}

MetricsPage::~MetricsPage() = default;

int MetricsPage::port() const { return server_->exposer.GetListeningPorts().front(); }

}  // namespace cubind
