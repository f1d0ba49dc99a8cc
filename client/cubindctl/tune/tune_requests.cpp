#include "client/cubindctl/tune/tune_requests.hpp"

#include "base/error.hpp"
#include "client/cubindctl/tune/asked_shapes.hpp"
#include "client/cubindctl/tune/problem_locations.hpp"
#include "client/request.hpp"
#include "plan/wire.hpp"

namespace cubind::ctl {
namespace {

void check_combination(const TuneOptions& options) {
  const auto refuse = [](bool given, const char* option, const char* reason) {
    if (given) {
      throw Error(ErrorCode::InvalidArgument, option, reason);
    }
  };
  refuse(options.top > 0 && !options.wanted, "--top", "goes with --wanted");
  if (!options.wanted) {
    return;
  }
  constexpr const char* kOwn = "does not go with --wanted: each entry of the want list has its own";
  refuse(!options.shapes.empty(), "--shapes", kOwn);
  refuse(!options.problems.empty(), "--problem", kOwn);
  refuse(!options.device.empty(), "--device", kOwn);
  refuse(!options.name_space.empty(), "--namespace", kOwn);
  refuse(options.warm_l2, "--warm-l2", kOwn);
  refuse(options.graph_launch, "--graph", kOwn);
  refuse(options.reproducible, "--reproducible", kOwn);
  refuse(!options.invariant_dim.empty(), "--invariant", kOwn);
}

v1::TuneRequest common_request(const TuneOptions& options) {
  v1::TuneRequest request;
  request.set_retune(options.retune);
  request.set_detach(options.detach);
  request.set_max_trials(options.max_trials);
  request.set_max_seconds(options.max_seconds);
  if (options.wanted) {
    request.set_kernel(options.kernel);
    request.mutable_wanted()->set_top(options.top);
    return request;
  }
  if (!options.device.empty()) {
    request.mutable_device()->set_label(options.device);
  }
  request.mutable_policy()->set_warm_l2(options.warm_l2);
  request.mutable_policy()->set_graph_launch(options.graph_launch);
  *request.mutable_numerics() = make_numerics(options.reproducible, options.invariant_dim);
  request.set_namespace_(options.name_space);
  return request;
}

}  // namespace

std::vector<KernelTune> tune_requests(const TuneOptions& options) {
  check_combination(options);
  const v1::TuneRequest common = common_request(options);
  if (options.wanted) {
    return {{common, {}, {}}};
  }
  std::vector<KernelTune> tunes;
  for (const KernelShapes& group :
       asked_shapes({"tune", options.kernel, options.shapes, options.problems, " or --wanted"})) {
    KernelTune& tune = tunes.emplace_back(KernelTune{common, {}, {}});
    tune.kernel_where = options.kernel.empty() ? group.shapes.front().where : "";
    tune.request.set_kernel(group.kernel);
    for (const Shape& shape : group.shapes) {
      to_wire(shape.problem, *tune.request.add_problems());
      tune.locations.push_back(shape.where);
    }
  }
  return tunes;
}

void with_locations(const KernelTune& tune, const std::function<void()>& ask) {
  try {
    with_locations(tune.locations, ask);
  } catch (const Error& error) {
    constexpr std::string_view kKernel = "kernel: ";
    const std::string message = error.what();
    if (tune.kernel_where.empty() || !message.starts_with(kKernel)) {
      throw;
    }
    throw Error(error.code(), tune.kernel_where + " /kernel", message.substr(kKernel.size()));
  }
}

}  // namespace cubind::ctl
