#include <exception>

#include "tuner/worker/timer.hpp"

namespace cubind::worker {

InstantiatedGraph::InstantiatedGraph(const DriverContext& context, const std::function<void()>& enqueue)
    : context_(context) {
  const cuda::DriverApi& api = context.api();
  cuda::check(api, api.stream_begin_capture(context.stream(), cuda::kCaptureThreadLocal),
              "capture of a graph");
  std::exception_ptr failure;
  try {
    enqueue();
  } catch (...) {
    failure = std::current_exception();  // the capture must end whatever happened
  }
  const cuda::Result ended = api.stream_end_capture(context.stream(), &graph_);
  if (failure) {
    if (graph_ != nullptr) {
      api.graph_destroy(graph_);
    }
    std::rethrow_exception(failure);
  }
  cuda::check(api, ended, "capture of a graph");
  const cuda::Result made = api.graph_instantiate(&exec_, graph_, 0);
  if (made != cuda::Result::Success) {
    api.graph_destroy(graph_);
    throw cuda::DriverError(api, made, "instantiation of a graph");
  }
}

InstantiatedGraph::~InstantiatedGraph() {
  context_.api().graph_exec_destroy(exec_);
  context_.api().graph_destroy(graph_);
}

void InstantiatedGraph::launch() const {
  cuda::check(context_.api(), context_.api().graph_launch(exec_, context_.stream()), "launch of a graph");
}

}  // namespace cubind::worker
