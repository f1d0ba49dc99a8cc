// cubindctl tune: measures problems.
#include "client/cubindctl/commands.hpp"
#include "client/cubindctl/tune/progress.hpp"
#include "client/cubindctl/tune/tune_requests.hpp"
#include "client/cubindctl/tune/watch.hpp"

namespace cubind::ctl {
namespace {

// Several kernels are several calls: all are submitted before the first one is followed.
void tune_several(const std::vector<KernelTune>& tunes, bool detach, const CommonOptions& common,
                  Connection& connection, const OnTuneEvent& on_event, const std::stop_token& stop) {
  std::vector<std::string> open;
  const OnTuneEvent note = [&](const v1::TuneEvent& event) {
    if (!has_ended(event.job().state())) {
      open.push_back(event.job().id());
    }
    on_event(event);
  };
  for (const KernelTune& tune : tunes) {
    v1::TuneRequest request = tune.request;
    request.set_detach(true);
    with_locations(tune, [&] { connection.tune(request, note, stop, common.timeout); });
  }
  for (const std::string& id : detach ? std::vector<std::string>{} : open) {
    connection.watch_job(id, on_event, stop, common.timeout);
  }
}

}  // namespace

ExitCode run(const TuneOptions& options, const CommonOptions& common) {
  const std::vector<KernelTune> tunes = tune_requests(options);
  const auto stream = [&](Connection& connection, const OnTuneEvent& on_event, const std::stop_token& stop) {
    if (tunes.size() > 1) {
      tune_several(tunes, options.detach, common, connection, on_event, stop);
      return;
    }
    with_locations(tunes.front(),
                   [&] { connection.tune(tunes.front().request, on_event, stop, common.timeout); });
  };
  std::size_t problems = 0;
  for (const KernelTune& tune : tunes) {
    problems += tune.locations.size();
  }
  return follow(common, problems, stream);
}

}  // namespace cubind::ctl
