// cubindctl tune: measures problems.
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/text.hpp"
#include "client/cubindctl/commands.hpp"
#include "client/cubindctl/dry_run.hpp"
#include "client/cubindctl/shape_list.hpp"
#include "client/cubindctl/watch.hpp"
#include "client/request.hpp"
#include "tuner/plan/wire.hpp"

namespace cubind::ctl {
namespace {

std::string kernel_of(const TuneOptions& options, const ShapeList& list) {
  if (!options.kernel.empty() && list.kernel && *list.kernel != options.kernel) {
    throw Error(ErrorCode::InvalidArgument, options.shapes + " /kernel",
                "the list is for " + quoted(*list.kernel) + ", not for " + quoted(options.kernel));
  }
  if (options.kernel.empty() && !list.kernel) {
    throw Error(ErrorCode::InvalidArgument, "kernel",
                "name it: `cubindctl tune KERNEL ...`, or put \"kernel\" into the shape list");
  }
  return options.kernel.empty() ? *list.kernel : options.kernel;
}

void check_combination(const TuneOptions& options) {
  const auto refuse = [](bool given, const char* option, const char* reason) {
    if (given) {
      throw Error(ErrorCode::InvalidArgument, option, reason);
    }
  };
  refuse(options.top > 0 && !options.wanted, "--top", "goes with --wanted");
  refuse(options.dry_run && options.detach, "--detach", "does not go with --dry-run, which starts nothing");
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

v1::TuneRequest request_of(const TuneOptions& options) {
  check_combination(options);
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
  ShapeList list;
  if (!options.shapes.empty()) {
    list = read_shape_list(read_file(options.shapes), options.shapes);
  }
  for (const std::string& problem : options.problems) {
    list.problems.push_back(parse_problem(problem));
  }
  if (list.problems.empty()) {
    throw Error(ErrorCode::InvalidArgument, "problems",
                "give --shapes FILE, --problem N=4096,T=bf16 or --wanted");
  }
  request.set_kernel(kernel_of(options, list));
  for (const Problem& problem : list.problems) {
    to_wire(problem, *request.add_problems());
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

ExitCode run(const TuneOptions& options, const CommonOptions& common) {
  const v1::TuneRequest request = request_of(options);
  if (options.dry_run) {
    return print_plan(request, common);
  }
  const auto stream = [&](Connection& connection, const OnTuneEvent& on_event, const std::stop_token& stop) {
    connection.tune(request, on_event, stop, common.timeout);
  };
  return follow(common, static_cast<std::size_t>(request.problems_size()), stream);
}

}  // namespace cubind::ctl
