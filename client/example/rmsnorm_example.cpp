// RMSNorm through cubind, as a training job would call it: for each problem it gets the best variant from the
// daemon, launches it on a stream, and checks every element of the output against float64 on the host.
//
//   rmsnorm-example [--address ADDRESS] [--wait] [--problem N=4096,D=4096,T=bf16]...
//
// The program knows RMSNorm's formula and the names of the kernel's arguments. Tunables, grid and cubin are
// the daemon's business. Exit code: 0, or 1 if an element is wrong or a call fails, 2 for wrong usage.

#include <cstdio>
#include <cstring>
#include <exception>
#include <random>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "client/client.hpp"
#include "client/example/rmsnorm_check.hpp"
#include "client/kernel.hpp"
#include "cuda_api/device_facts.hpp"
#include "schemas/cubind.pb.h"

namespace {

using cubind::cuda::check;
using example::Matrix;

constexpr float kEps = 1e-6f;

// The first visible GPU with its primary context, which a framework would have made already, and a stream.
class Gpu {
 public:
  Gpu() : driver_(cubind::cuda::load_driver()) {
    device_ = cubind::cuda::select_device(*driver_, "");
    cubind::cuda::Context context = nullptr;
    check(*driver_, driver_->primary_ctx_retain(&context, device_), "cuDevicePrimaryCtxRetain");
    check(*driver_, driver_->ctx_set_current(context), "cuCtxSetCurrent");
    check(*driver_, driver_->stream_create(&stream_, cubind::cuda::kStreamNonBlocking), "cuStreamCreate");
  }
  ~Gpu() {
    driver_->stream_destroy(stream_);
    driver_->primary_ctx_release(device_);
  }
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  const cubind::cuda::DriverApi& driver() const { return *driver_; }
  cubind::cuda::Stream stream() const { return stream_; }

 private:
  std::shared_ptr<const cubind::cuda::DriverApi> driver_;
  cubind::cuda::DeviceOrdinal device_ = 0;
  cubind::cuda::Stream stream_ = nullptr;
};

// A matrix's bytes on the GPU. The memory starts as NaN in every type, so that what a kernel forgets to write
// shows.
class DeviceMatrix {
 public:
  DeviceMatrix(const Gpu& gpu, const Matrix& matrix) : gpu_(gpu), bytes_(matrix.data.size()) {
    check(gpu.driver(), gpu.driver().mem_alloc(&pointer_, bytes_), "cuMemAlloc");
    check(gpu.driver(), gpu.driver().memset_d8_async(pointer_, 0xff, bytes_, gpu.stream()),
          "cuMemsetD8Async");
  }
  ~DeviceMatrix() { gpu_.driver().mem_free(pointer_); }
  DeviceMatrix(const DeviceMatrix&) = delete;
  DeviceMatrix& operator=(const DeviceMatrix&) = delete;

  cubind::cuda::DevicePtr pointer() const { return pointer_; }
  void upload(const Matrix& from) {
    check(gpu_.driver(), gpu_.driver().memcpy_htod_async(pointer_, from.data.data(), bytes_, gpu_.stream()),
          "upload");
  }
  void download(Matrix& to) {
    check(gpu_.driver(), gpu_.driver().memcpy_dtoh_async(to.data.data(), pointer_, bytes_, gpu_.stream()),
          "download");
    check(gpu_.driver(), gpu_.driver().stream_synchronize(gpu_.stream()), "running the kernel");
  }

 private:
  const Gpu& gpu_;
  std::size_t bytes_;
  cubind::cuda::DevicePtr pointer_ = 0;
};

// x and w are inputs, y is written.
void rmsnorm(const cubind::LoadedKernel& kernel, const DeviceMatrix& x, const DeviceMatrix& w,
             const DeviceMatrix& y, cubind::cuda::Stream stream) {
  kernel.launch(cubind::Arguments()
                    .buffer("x", x.pointer())
                    .buffer("w", w.pointer())
                    .buffer("y", y.pointer())
                    .scalar("eps", kEps),
                stream);
}

void print_line(const cubind::Answer& answer, const example::CheckResult& result) {
  const cubind::v1::Provenance& provenance = answer.reply().provenance();
  std::printf("%-26s %-10s %-9s %9.2f  %9.3g  %7.3f  %-5s  %s\n", to_string(answer.problem()).c_str(),
              to_string(answer.match()).c_str(), std::string(to_string(answer.evidence())).c_str(),
              provenance.timing().median_us(), result.worst_error, result.worst_excess,
              result.wrong == 0 ? "right" : "WRONG", to_string(answer.configuration()).c_str());
  if (result.wrong > 0) {
    std::printf("  %lld elements are outside of the tolerance, the worst at row %lld, column %lld\n",
                static_cast<long long>(result.wrong), static_cast<long long>(result.row),
                static_cast<long long>(result.column));
  }
  std::fflush(stdout);
}

// Returns whether every element was right.
bool run_problem(cubind::Client& client, const Gpu& gpu, const cubind::Query& query) {
  const cubind::Answer answer = client.get(query);
  const cubind::LoadedKernel kernel(answer);
  const cubind::DType type = answer.problem().type("T").value();
  const std::int64_t n = answer.problem().dim("N").value(), d = answer.problem().dim("D").value();

  Matrix x(type, n, d), w(type, 1, d), y(type, n, d);
  example::fill_random(x, std::random_device()());
  example::fill_random(w, std::random_device()());
  DeviceMatrix device_x(gpu, x), device_w(gpu, w), device_y(gpu, y);
  device_x.upload(x);
  device_w.upload(w);
  rmsnorm(kernel, device_x, device_w, device_y, gpu.stream());
  device_y.download(y);

  const example::CheckResult result = example::check_rmsnorm(x, w, y, kEps);
  print_line(answer, result);
  return result.wrong == 0;
}

struct Options {
  std::string address;
  cubind::OnMiss on_miss = cubind::OnMiss::Serve;
  std::vector<std::string> problems;
};

[[noreturn]] void usage() {
  std::fputs("usage: rmsnorm-example [--address ADDRESS] [--wait] [--problem N=4096,D=4096,T=bf16]...\n",
             stderr);
  std::exit(2);
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const bool has_value = i + 1 < argc;
    if (argument == "--address" && has_value) {
      options.address = argv[++i];
    } else if (argument == "--problem" && has_value) {
      options.problems.emplace_back(argv[++i]);
    } else if (argument == "--wait") {
      options.on_miss = cubind::OnMiss::Wait;
    } else {
      usage();
    }
  }
  if (options.problems.empty()) {
    options.problems = {"N=1024,D=8192,T=bf16", "N=4096,D=4096,T=bf16", "N=16384,D=4096,T=bf16",
                        "N=65536,D=1024,T=bf16"};
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Options options = parse(argc, argv);
    cubind::Client client({.address = options.address, .deadline = std::chrono::minutes(5)});
    const Gpu gpu;
    std::printf("%-26s %-10s %-9s %9s  %9s  %7s  %-5s  %s\n", "problem", "match", "evidence", "time_us",
                "max_error", "excess", "every", "configuration");
    bool right = true;
    for (const std::string& problem : options.problems) {
      right &= run_problem(client, gpu,
                           {.kernel = "rmsnorm_forward",
                            .problem = cubind::parse_problem(problem),
                            .on_miss = options.on_miss});
    }
    return right ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rmsnorm-example: %s\n", error.what());
    return 1;
  }
}
