#include "tests/nvrtc/compile_pool/pool_requests.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "tests/support/eventually.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/process_tree.hpp"

using namespace std::chrono_literals;

namespace cubind::test {
namespace {

// A worker that has computed for so long has started and compiles.
constexpr std::chrono::milliseconds kCompiles{500};

}  // namespace

CompilePoolOptions options_for(const Toolchain& toolchain, unsigned jobs) {
  CompilePoolOptions options;
  options.program = nvrtc_program(bin_dir() / "cubind-worker", toolchain.nvrtc, toolchain.builtins);
  options.jobs = jobs;
  return options;
}

CompilePoolOptions newest(unsigned jobs) { return options_for(toolchains().front(), jobs); }

v1::CompileRequest good(int n) {
  auto request = compile_request("template <int N> __global__ void k(int* p) { *p = N; }",
                                 {"k<" + std::to_string(n) + ">"});
  return request;
}

v1::CompileRequest endless() {
  const std::string source = R"(
    template <int D, int X> struct Tree { static const int v = Tree<D - 1, 2 * X>::v + Tree<D - 1, 2 * X + 1>::v; };
    template <int X> struct Tree<0, X> { static const int v = X & 1; };
    __global__ void k(int* p) { *p = Tree<26, 1>::v; })";
  return compile_request(source, {"k"});
}

CompileResult result_of(CompilePool& pool, CompileInput input) {
  auto result = pool.wait(pool.submit(std::move(input)), 120s);
  REQUIRE(result.has_value());
  return *result;
}

int busy_worker(CompilePool& pool) {
  std::vector<int> pids;
  REQUIRE(eventually(
      [&] {
        pids = pool.worker_pids();
        return !pids.empty() && cpu_time(pids.front()) >= kCompiles;
      },
      120s));
  return pids.front();
}

std::size_t workers_of(const CompilePool& pool, std::size_t wanted) {
  eventually([&] { return pool.worker_pids().size() == wanted; });
  std::this_thread::sleep_for(300ms);
  return pool.worker_pids().size();
}

pid_t started_worker(pid_t other_than) {
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  while (std::chrono::steady_clock::now() < deadline) {
    std::vector<ProcessId> workers = descendants(getpid());
    std::erase_if(workers, [](const ProcessId& one) {
      return one.command.find("cubind-worker compile") == std::string::npos;
    });
    if (workers.size() == 1 && workers.front().pid != other_than) {
      return workers.front().pid;
    }
    std::this_thread::sleep_for(1ms);
  }
  FAIL("there is no worker or several");
  return -1;
}

}  // namespace cubind::test
