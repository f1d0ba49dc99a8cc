#include "tests/nvrtc/compile_service/service_requests.hpp"

#include <unistd.h>

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

CompileServiceOptions options_for(const Toolchain& toolchain, unsigned slots) {
  CompileServiceOptions options;
  options.program = nvrtc_program(bin_dir() / "cubind-worker", toolchain.nvrtc, toolchain.builtins);
  options.slots = std::make_shared<CompileSlots>(slots);
  options.deadline = options.start_deadline = 1h;
  options.nice = 0;
  return options;
}

CompileServiceOptions newest(unsigned slots) { return options_for(toolchains().front(), slots); }

v1::CompileRequest good(int n) {
  return compile_request("template <int N> __global__ void k(int* p) { *p = N; }",
                         {"k<" + std::to_string(n) + ">"});
}

v1::CompileRequest endless(int n) {
  const std::string source = R"(
    template <int D, int X> struct Tree { static const int v = Tree<D - 1, 2 * X>::v + Tree<D - 1, 2 * X + 1>::v; };
    template <int X> struct Tree<0, X> { static const int v = X & 1; };
    __global__ void k(int* p) { *p = Tree<26, 1>::v; }  // )";
  return compile_request(source + std::to_string(n), {"k"});
}

Digest ask(CompileService& service, const CompileInput& input, CompilePriority priority) {
  const Digest key = Digest::of(input.request.SerializeAsString());
  service.want(key, priority, [&] { return input; });
  return key;
}

v1::CompileReply reply_to(CompileService& service, const Digest& key) {
  Compiler::ResultPtr result;
  while (!result) {
    result = service.wait(key, 10s);
  }
  service.give_up(key);
  return result->reply;
}

v1::CompileReply compile(CompileService& service, const CompileInput& input) {
  return reply_to(service, ask(service, input));
}

bool waits(CompileService& service, const Digest& key, std::chrono::milliseconds time) {
  return !service.wait(key, time);
}

std::set<pid_t> workers() {
  std::set<pid_t> result;
  for (const ProcessId& process : descendants(::getpid())) {
    if (process.command.find("cubind-worker compile") != std::string::npos) {
      result.insert(process.pid);
    }
  }
  return result;
}

std::size_t workers_of(std::size_t wanted) {
  eventually([&] { return workers().size() == wanted; });
  std::this_thread::sleep_for(300ms);
  return workers().size();
}

pid_t started_worker(pid_t other_than) {
  while (true) {
    for (const pid_t worker : workers()) {
      if (worker != other_than) {
        return worker;
      }
    }
    std::this_thread::sleep_for(1ms);
  }
}

pid_t busy_worker() {
  while (true) {
    for (const pid_t worker : workers()) {
      if (cpu_time(worker) >= kCompiles) {
        return worker;
      }
    }
    std::this_thread::sleep_for(5ms);
  }
}

}  // namespace cubind::test
