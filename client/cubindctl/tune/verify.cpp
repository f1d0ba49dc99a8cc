// cubindctl verify: measures records again.
#include <iostream>

#include "base/error.hpp"
#include "client/cubindctl/commands.hpp"
#include "client/cubindctl/tune/watch.hpp"
#include "client/request.hpp"
#include "plan/wire.hpp"

namespace cubind::ctl {
namespace {

v1::TuneRequest request_of(const VerifyOptions& options) {
  if (options.kernel.empty() && !options.problems.empty()) {
    throw Error(ErrorCode::InvalidArgument, "--problem",
                "needs a kernel: `cubindctl verify KERNEL --problem ...`");
  }
  v1::TuneRequest request;
  request.set_kernel(options.kernel);
  for (const std::string& problem : options.problems) {
    to_wire(parse_problem(problem), *request.add_problems());
  }
  if (!options.device.empty()) {
    request.mutable_device()->set_label(options.device);
  }
  request.mutable_verify()->set_all(options.all);
  return request;
}

}  // namespace

ExitCode run(const VerifyOptions& options, const CommonOptions& common) {
  const v1::TuneRequest request = request_of(options);
  bool any = false;
  const auto stream = [&](Connection& connection, const OnTuneEvent& on_event, const std::stop_token& stop) {
    const OnTuneEvent note = [&](const v1::TuneEvent& event) {
      any = true;
      on_event(event);
    };
    connection.tune(request, note, stop, common.timeout);
  };
  const ExitCode ended = follow(common, options.problems.size(), stream);
  if (!any && !common.json && ended == ExitCode::Ok) {
    std::cout << (options.all ? "No record was measured here on a device that is offered now.\n"
                              : "No record is stale.\n");
  }
  return ended;
}

}  // namespace cubind::ctl
