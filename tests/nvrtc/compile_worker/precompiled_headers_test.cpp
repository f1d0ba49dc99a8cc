// Configurations of a kernel that share its headers precompiled, against those that do not.
#include "tuner/worker/precompiled_headers.hpp"

#include <sys/resource.h>
#include <unistd.h>
#include <catch2/catch.hpp>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "base/digest.hpp"
#include "base/text.hpp"
#include "tests/nvrtc/compile_worker/any_toolchain.hpp"
#include "tests/nvrtc/compile_worker/worker_process.hpp"

using Catch::Matchers::Contains;

namespace cubind::test {
namespace {

constexpr char kPrefix[] =
    "// Sums.\n#include <cub/block/block_reduce.cuh>\n#include <cub/block/block_scan.cuh>\n";
constexpr rlim_t kLittle = rlim_t{200} << 20;  // less than NVRTC reserves for a header
constexpr char kBody[] = R"(
#ifndef BLOCK
#define BLOCK 64
#endif
namespace { __device__ float scale = 2; }
static __device__ int lines[] = {__LINE__, sizeof(__FILE__)};
template <int I> __global__ void k(const float* x, float* y) {
  using Reduce = cub::BlockReduce<float, BLOCK>;
  using Scan = cub::BlockScan<float, BLOCK>;
  __shared__ union { typename Reduce::TempStorage reduce; typename Scan::TempStorage scan; } t;
  float sum = 0;
  for (int i = 0; i < I; ++i) sum += x[threadIdx.x + i * BLOCK] * scale + lines[i & 1];
  const float all = Reduce(t.reduce).Sum(sum);
  __syncthreads();
  Scan(t.scan).InclusiveSum(sum, sum);
  y[threadIdx.x] = sum + all;
}
)";

v1::CompileRequest with_headers(const std::string& source, const Toolchain& toolchain) {
  auto request = compile_request_with_headers(source, {"k<ITEMS>"}, toolchain);
  request.mutable_header_set()->set_digest("CUB and others");
  request.mutable_header_set()->mutable_files()->Swap(request.mutable_headers());
  return request;
}

/// The n-th configuration.
v1::CompileRequest configuration(v1::CompileRequest request, int n) {
  request.add_defines("BLOCK=" + std::to_string(64 << (n % 3)));
  request.add_defines("ITEMS=" + std::to_string(n + 1));
  return request;
}

/// A header that is large, and its name.
v1::CompileRequest with_large_header(const std::string& source, const std::string& header) {
  auto request = compile_request(source, {"k"});
  request.mutable_header_set()->set_digest(header);
  v1::SourceFile& file = *request.mutable_header_set()->add_files();
  file.set_path("large.h");
  file.set_content(header + "\n/*" + std::string(std::size_t{4} << 20, 'x') + "*/\n");
  request.set_others_follow(true);
  return request;
}

/// By a worker that keeps no header, because a request has its headers for itself.
v1::CompileReply plainly(WorkerProcess& worker, v1::CompileRequest request) {
  request.mutable_headers()->Swap(request.mutable_header_set()->mutable_files());
  request.clear_header_set();
  return worker.compile(request);
}

bool has_header(const WorkerProcess& worker) {
  for (const auto& one :
       std::filesystem::directory_iterator("/proc/" + std::to_string(worker.pid()) + "/fd")) {
    if (std::filesystem::read_symlink(one).string().starts_with("/memfd:")) {
      return true;
    }
  }
  return false;
}

// NVRTC knows them from 12.8 on.
bool makes_headers(const Toolchain& toolchain) { return toolchain.major > 12 || toolchain.minor >= 8; }

// The address space, in bytes.
rlim_t memory_of(const WorkerProcess& worker) {
  std::ifstream statm("/proc/" + std::to_string(worker.pid()) + "/statm");
  rlim_t pages = 0;
  statm >> pages;
  return pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
}

double cpu_seconds(const WorkerProcess& worker) {
  clockid_t clock{};
  timespec used{};
  REQUIRE(::clock_getcpuclockid(worker.pid(), &clock) == 0);
  REQUIRE(::clock_gettime(clock, &used) == 0);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

void check_same(v1::CompileReply reply, v1::CompileReply plain) {
  CHECK(reply.log() == plain.log());
  CHECK(Digest::of(reply.cubin()) == Digest::of(plain.cubin()));
  for (v1::CompileReply* one : {&reply, &plain}) {
    one->clear_compile_ms();
    one->clear_log();
    one->clear_cubin();
  }
  CHECK(reply.ShortDebugString() == plain.ShortDebugString());
}

}  // namespace

TEST_CASE("precompiled headers change no byte of a reply, and cost less") {
  const Toolchain& toolchain = any_toolchain();
  if (!makes_headers(toolchain)) {
    return;
  }
  v1::CompileRequest request = with_headers(std::string(kPrefix) + kBody, toolchain);
  request.add_options(GENERATE("--restrict", "--generate-line-info"));
  request.set_others_follow(true);
  WorkerProcess worker(toolchain), plain(toolchain);
  CHECK_FALSE(has_header(worker));
  double first = 0, next = 0;
  for (int n = 0; n < 4; ++n) {
    const double before = cpu_seconds(worker);
    const v1::CompileReply reply = worker.compile(configuration(request, n));
    (n == 0 ? first : next) += cpu_seconds(worker) - before;
    CHECK(reply.outcome() == v1::CORRECT);
    check_same(reply, plainly(plain, configuration(request, n)));
    CHECK(has_header(worker));
  }
  CHECK(next / 3 < first / 2);
}

TEST_CASE("a header is precompiled for configurations that follow, and not for small headers") {
  const Toolchain& toolchain = toolchains().front();
  auto request = with_large_header("#include \"large.h\"\n__global__ void k(int* p) { *p = N; }\n", "");
  const auto nth = [&](int n) {
    v1::CompileRequest one = request;
    one.add_defines("N=" + std::to_string(n));
    return one;
  };
  SECTION("others wait") {
    WorkerProcess worker(toolchain);
    worker.compile(nth(1));
    CHECK(has_header(worker));
  }
  SECTION("it is the second") {
    request.clear_others_follow();
    WorkerProcess worker(toolchain);
    worker.compile(nth(1));
    CHECK_FALSE(has_header(worker));
    worker.compile(nth(2));
    CHECK(has_header(worker));
  }
  SECTION("it is small") {
    request.mutable_header_set()->mutable_files(0)->set_content("\n");
    WorkerProcess worker(toolchain);
    worker.compile(nth(1));
    CHECK_FALSE(has_header(worker));
  }
}

TEST_CASE("what headers say, and what they see, is the same with each configuration") {
  const std::string header =
      GENERATE("", "#warning of a header", "#if N == 2\n__device__ int other;\n#endif", "#define N 3",
               "#pragma nv_hdrstop", "#pragma no_pch", "#error of a header",
               "#define Q(x) x##N\n__device__ int Q(a);\n#define aN 7");
  const std::string source = GENERATE("__global__ void k(int* p) { int unused; *p = N; }\n",
                                      "#define N 5\n__global__ void k(int* p) { *p = N; }\n",
                                      "#line 7\n__global__ void k(int* p) { *p = __LINE__ + N; }\n",
                                      "__global__ void k(int* p) { *p = N < 2 ? N : undefined; }\n");
  const auto request = with_large_header("#include \"large.h\"\n" + source, header);
  WorkerProcess worker(toolchains().front()), plain(toolchains().front());
  for (int n = 1; n < 4; ++n) {
    v1::CompileRequest one = request;
    one.add_defines("N=" + std::to_string(n));
    INFO(header << "\n" << source << n);
    check_same(worker.compile(one), plainly(plain, one));
  }
}

TEST_CASE("a precompiled header is not taken for another of its name") {
  WorkerProcess worker(toolchains().front());
  const std::string source = "#include \"large.h\"\n__global__ void k(int* p) { *p = VALUE; }\n";
  const auto cubin_of = [&](int value) {
    return worker.compile(with_large_header(source, "#define VALUE " + std::to_string(value))).cubin();
  };
  const std::string one = cubin_of(1), two = cubin_of(2);
  CHECK(one != two);
  CHECK(one == cubin_of(1));
  CHECK(two == cubin_of(2));
}

TEST_CASE("a source reads no file with precompiled headers, nor the header itself") {
  WorkerProcess worker(toolchains().front());
  const std::string begin = "#include \"large.h\"\n", end = "\n__global__ void k(int* p) { *p = 1; }\n";
  worker.compile(with_large_header(begin + end, ""));
  REQUIRE(has_header(worker));
  const auto log_of = [&](const std::string& path) {
    return replaced(
        worker.compile(with_large_header(begin + "#define F \"" + path + "\"\n#include F" + end, "")).log(),
        path, "PATH");
  };
  const std::string absent = log_of("/no/such/file");
  CHECK_THAT(absent, Contains("cannot open source file \"PATH\""));
  for (const char* path : {"/etc/passwd", "/proc/self/fd/4", "/proc/self/fd/5", "/dev/fd/4", "/tmp", "/"}) {
    CHECK(log_of(path) == absent);
  }
}

TEST_CASE("a limit that forbids a precompiled header costs no configuration") {
  const auto limit = GENERATE(RLIMIT_FSIZE, RLIMIT_NOFILE, RLIMIT_AS);
  WorkerProcess worker(toolchains().front()), plain(toolchains().front());
  const auto request = with_large_header("#include \"large.h\"\n__global__ void k(int* p) { *p = N; }\n", "");
  const rlim_t value = limit == RLIMIT_NOFILE  ? 4
                       : limit == RLIMIT_FSIZE ? 100'000
                                               : memory_of(worker) + kLittle;
  const rlimit low{.rlim_cur = value, .rlim_max = value};
  REQUIRE(::prlimit(worker.pid(), limit, &low, nullptr) == 0);
  for (int n = 1; n < 4; ++n) {
    v1::CompileRequest one = request;
    one.add_defines("N=" + std::to_string(n));
    INFO(int(limit) << " " << n);
    check_same(worker.compile(one), plainly(plain, one));
    CHECK_FALSE(has_header(worker));
  }
}

}  // namespace cubind::test
