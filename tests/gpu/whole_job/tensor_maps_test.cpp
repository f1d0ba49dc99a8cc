// The kernel with a tensor map of docs/kernels.md: tuned on a real GPU, and launched by the client library in
// a stream and in a graph.
#include <catch2/catch.hpp>
#include <numeric>
#include <vector>

#include "base/file.hpp"
#include "client/client.hpp"
#include "client/kernel.hpp"
#include "tests/gpu/whole_job/on_device.hpp"
#include "tests/support/daemon_fixture.hpp"
#include "tests/support/docs.hpp"

namespace cubind::test {
namespace {

constexpr std::int64_t kRows = 1000, kColumns = 516;  // tiles of 32 columns reach beyond
const Problem kProblem{{{"N", kRows}, {"D", kColumns}}, {}, {}, ""};

struct DaemonWithTransposition {
  DaemonWithTransposition() {
    create_folders(folder.path() / "kernels");
    for (const auto& [file, language] : {std::pair("transpose.cu", "cuda"), {"transpose.json", "json"}}) {
      write_file_atomic(folder.path() / "kernels" / file,
                        code_block("kernels.md", "## Tensor maps", language));
    }
    daemon.start();
    REQUIRE(eventually([&] { return daemon.connect().get_status(kPatience).devices_size() > 0; }));
  }
  v1::Job tuned() const {
    v1::TuneRequest request;
    request.set_kernel("transpose");
    *request.add_problems() = wire(kProblem);
    v1::TuneEvent last;
    daemon.connect().tune(
        request, [&](const v1::TuneEvent& event) { last = event; }, {}, std::chrono::minutes(3));
    return last.job();
  }
  LoadedKernel loaded() const {
    Client client({.address = daemon.address()});
    Query query;
    query.kernel = "transpose";
    query.problem = kProblem;
    return LoadedKernel(client.get(query));
  }

  TempDir folder{"cubind-maps"};
  Daemon daemon{{.folder = folder.path(), .kernels = {folder.path() / "kernels"}}};
};

std::vector<float> numbers() {
  std::vector<float> x(kRows * kColumns);
  std::iota(x.begin(), x.end(), 0.0f);
  return x;
}

bool is_transposed(const std::vector<float>& y) {
  for (std::int64_t n = 0; n < kRows; ++n) {
    for (std::int64_t d = 0; d < kColumns; ++d) {
      if (y[static_cast<std::size_t>(d * kRows + n)] != static_cast<float>(n * kColumns + d)) {
        return false;
      }
    }
  }
  return true;
}

/// What `enqueue` puts in a stream, as a graph.
template <typename Enqueue>
cuda::GraphExec captured(const cuda::DriverApi& api, cuda::Stream stream, const Enqueue& enqueue) {
  cuda::Graph graph = nullptr;
  cuda::GraphExec instantiated = nullptr;
  cuda::check(api, api.stream_begin_capture(stream, cuda::kCaptureThreadLocal), "begin of the capture");
  enqueue();
  cuda::check(api, api.stream_end_capture(stream, &graph), "end of the capture");
  cuda::check(api, api.graph_instantiate(&instantiated, graph, 0), "instantiation");
  api.graph_destroy(graph);
  return instantiated;
}

TEST_CASE("a kernel that copies with TMA is tuned and launched in a stream and in a graph") {
  const DaemonWithTransposition transposition;
  const v1::Job job = transposition.tuned();
  INFO(job.DebugString());
  REQUIRE(job.state() == v1::Job::DONE);

  const LoadedKernel kernel = transposition.loaded();
  const std::vector<float> nothing(kRows * kColumns, -1.0f);
  const OnDevice<float> x(numbers()), y(nothing), in_graph(nothing);
  kernel.launch(Arguments().buffer("x", x.address()).buffer("y", y.address()), nullptr);
  CHECK(is_transposed(y.content()));

  const auto api = cuda::load_driver();
  cuda::Stream stream = nullptr;
  cuda::check(*api, api->stream_create(&stream, cuda::kStreamNonBlocking), "stream");
  const auto prepared = kernel.bound().prepare(std::array<std::int64_t, 2>{kRows, kColumns}).value();
  std::array<ArgumentValue, 2> values{x.address(), in_graph.address()};
  const cuda::GraphExec graph = captured(*api, stream, [&] { prepared.launch(values, stream); });
  cuda::check(*api, api->graph_launch(graph, stream), "graph");
  CHECK(is_transposed(in_graph.content()));

  CHECK(prepared.captured() == std::vector<CapturedBuffer>{{0, x.address()}});
  values[0] = y.address();
  CHECK_THROWS_WITH(prepared.launch(values, stream), Catch::Contains("argument x: "));
  api->graph_exec_destroy(graph);
  api->stream_destroy(stream);
}

}  // namespace
}  // namespace cubind::test
