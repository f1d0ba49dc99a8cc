#include "tuner/agent/compile/compile_service.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <thread>

#include "tests/nvrtc/compile_service/service_requests.hpp"
#include "tests/support/paths.hpp"

using namespace std::chrono_literals;
using Catch::Matchers::Contains;

namespace cubind::test {

// ---- the queue ----

TEST_CASE("each toolchain says in a probe what it is and its worker takes the first request") {
  for (const Toolchain& toolchain : toolchains()) {
    CompileService service(options_for(toolchain));
    CHECK(service.probe().name() == toolchain.name());
    const auto probed = workers();
    const v1::CompileReply reply = compile(service, good());
    CHECK(reply.outcome() == v1::CORRECT);
    CHECK_FALSE(reply.cubin().empty());
    CHECK(workers() == probed);
  }
}

// The only slot of tuning jobs is taken until the fixture gives up its blocker.
struct Queue {
  CompileService service{newest()};
  Digest blocker = ask(service, endless(0));

  Queue() { started_worker(); }
};

TEST_CASE_METHOD(Queue, "a higher priority goes first") {
  const Digest low = ask(service, good(1), CompilePriority::Ahead);
  ask(service, endless());
  const Digest high = ask(service, good(2), CompilePriority::Reference);
  service.give_up(blocker);
  CHECK(reply_to(service, high).outcome() == v1::CORRECT);
  CHECK(waits(service, low));
}

TEST_CASE_METHOD(Queue, "requests of equal priority keep their order") {
  const Digest first = ask(service, good(1));
  ask(service, endless());
  const Digest last = ask(service, good(2));
  service.give_up(blocker);
  CHECK(reply_to(service, first).outcome() == v1::CORRECT);
  CHECK(waits(service, last));
}

TEST_CASE_METHOD(Queue, "a request that is raised or wanted sooner goes before those of its old priority") {
  const bool again = GENERATE(false, true);
  const Digest raised = ask(service, good(1), CompilePriority::Ahead);
  ask(service, endless());
  if (again) {
    ask(service, good(1), CompilePriority::Reference);
  } else {
    service.raise(raised, CompilePriority::Reference);
  }
  service.give_up(blocker);
  CHECK(reply_to(service, raised).outcome() == v1::CORRECT);
}

TEST_CASE("services that share slots run no more compiles at a time than there are") {
  const CompileServiceOptions options = newest();
  CompileService first(options), second(options);
  const Digest running = ask(first, endless());
  busy_worker();
  const Digest waiting = ask(second, good());
  CHECK(waits(second, waiting, 1s));
  first.give_up(running);
  CHECK(reply_to(second, waiting).outcome() == v1::CORRECT);
}

TEST_CASE_METHOD(Queue, "who is more in a hurry has a slot that others cannot keep busy") {
  const Digest tuning = ask(service, good(1));
  CHECK(reply_to(service, ask(service, good(2), CompilePriority::Check)).outcome() == v1::CORRECT);
  ask(service, endless(1), CompilePriority::Check);
  ask(service, endless(2), CompilePriority::Check);
  CHECK(reply_to(service, ask(service, good(3), CompilePriority::Question)).outcome() == v1::CORRECT);
  CHECK(waits(service, tuning));
}

TEST_CASE("as many processes work at a time as there are slots") {
  CompileService service(newest(3));
  for (int i = 0; i < 5; ++i) {
    ask(service, endless(i));
  }
  CHECK(workers_of(3) == 3);
}

TEST_CASE("processes compile in parallel and give the bytes that one of them gives") {
  const auto run = [](unsigned slots) {
    CompileService service(newest(slots));
    std::vector<Digest> keys;
    for (int i = 0; i < 8; ++i) {
      keys.push_back(ask(service, good(i)));
    }
    std::vector<std::string> cubins;
    for (const Digest& key : keys) {
      cubins.push_back(reply_to(service, key).cubin());
      CHECK_FALSE(cubins.back().empty());
    }
    return cubins;
  };
  CHECK(run(1) == run(4));
}

TEST_CASE("requests from many threads each come back once") {
  CompileService service(newest(2));
  std::vector<std::thread> threads;
  std::atomic<unsigned> correct = 0, calls = 0;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 4; ++i) {
        const Digest key = ask(service, good(10 * t + i));
        correct += reply_to(service, key).outcome() == v1::CORRECT ? 1 : 0;
        calls += service.take_nvrtc_calls(key);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(correct == 32);
  CHECK(calls == 32);
}

// ---- what jobs want and give up ----

TEST_CASE("what two jobs want at the same time is compiled once") {
  CompileService service(newest(2));
  const Digest key = ask(service, good());
  ask(service, good());
  Compiler::ResultPtr other;
  std::thread second([&] {
    while (!other) {
      other = service.wait(key, 10s);
    }
  });
  reply_to(service, key);
  second.join();
  CHECK(service.wait(key, 0s) == other);
  CHECK(other->entries == std::vector<std::string>{"k<1>"});
  CHECK(service.take_nvrtc_calls(key) == 1);
}

TEST_CASE("what an earlier job compiled is not compiled again and its calls count once") {
  CompileService service(newest());
  const Digest key = ask(service, good());
  reply_to(service, key);
  CHECK(service.take_nvrtc_calls(key) == 1);
  const auto kept = service.find(key);
  compile(service, good());
  CHECK(service.find(key) == kept);
  CHECK(service.take_nvrtc_calls(key) == 0);
}

TEST_CASE("an error of the source is kept and an end without the compiler's word is not") {
  CompileService service(newest());
  v1::CompileRequest refused = good();
  refused.set_source("no source");
  const Digest kept = ask(service, refused);
  CHECK(reply_to(service, kept).outcome() == v1::COMPILE);
  CHECK(service.find(kept));
  const Digest crashed = ask(service, endless());
  kill(busy_worker(), SIGSEGV);
  CHECK(reply_to(service, crashed).outcome() == v1::COMPILE);
  CHECK_FALSE(service.find(crashed));
}

TEST_CASE("beyond its bytes a service forgets what was used longest ago") {
  CompileServiceOptions options = newest();
  options.kept_bytes = compile(*std::make_unique<CompileService>(options), good(1)).cubin().size() * 5 / 2;
  CompileService service(options);
  const auto use = [&](int n) {
    const Digest key = ask(service, good(n));
    reply_to(service, key);
    return key;
  };
  const Digest first = use(1), second = use(2);
  service.find(first);
  const Digest third = use(3);
  CHECK(service.find(first));
  CHECK_FALSE(service.find(second));
  CHECK(service.find(third));
}

TEST_CASE("a compile ends when the last who wants it gives up and frees its slot at once") {
  CompileService service(newest());
  const Digest running = ask(service, endless());
  ask(service, endless());
  const pid_t worker = busy_worker();
  const Digest kept = ask(service, good(1)), dropped = ask(service, good(2));
  service.give_up(running);
  CHECK(waits(service, kept));
  service.give_up(dropped);
  service.give_up(running);
  service.give_up(Digest::of("unknown"));
  CHECK(reply_to(service, kept).outcome() == v1::CORRECT);
  CHECK(kill(worker, 0) != 0);
  CHECK_FALSE(service.find(dropped));
}

TEST_CASE("a service that ends kills what runs") {
  pid_t worker = -1;
  {
    CompileService service(newest());
    ask(service, endless());
    worker = busy_worker();
  }
  CHECK(kill(worker, 0) != 0);
}

// ---- the background ----

TEST_CASE("a compile in the background has a worker in the idle class and holds up no other") {
  CompileService service(newest());
  const Digest idle = ask(service, endless(), CompilePriority::Background);
  const pid_t background = started_worker();
  CHECK(sched_getscheduler(background) == SCHED_IDLE);
  compile(service, good());
  CHECK(waits(service, idle, 0s));
  CHECK(sched_getscheduler(started_worker(background)) == sched_getscheduler(0));
}

TEST_CASE("a compile in the background starts again in another process when a caller waits for it") {
  CompileService service(newest());
  const Digest raised = ask(service, endless(), CompilePriority::Background);
  const pid_t before = started_worker();
  service.raise(raised, CompilePriority::Tuning);
  CHECK(sched_getscheduler(started_worker(before)) == sched_getscheduler(0));
  CHECK(waits(service, raised, 0s));
}

TEST_CASE("a compile that waits behind one in the background leaves it when a caller waits for it") {
  CompileService service(newest());
  ask(service, endless(), CompilePriority::Background);
  started_worker();
  const Digest raised = ask(service, good(), CompilePriority::Background);
  CHECK(waits(service, raised));
  service.raise(raised, CompilePriority::Tuning);
  CHECK(reply_to(service, raised).outcome() == v1::CORRECT);
}

// ---- the workers ----

TEST_CASE("a worker makes way for a fresh one after so many compiles") {
  CompileServiceOptions options = newest();
  options.compiles_per_worker = 2;
  CompileService service(options);
  std::set<pid_t> seen;
  for (int i = 0; i < 5; ++i) {
    const Digest key = ask(service, good(i));
    seen.insert(started_worker());
    CHECK(reply_to(service, key).outcome() == v1::CORRECT);
  }
  CHECK(seen.size() == 3);
}

TEST_CASE("without NVRTC every request and probe says what is missing") {
  CompileServiceOptions options = newest();
  options.program =
      nvrtc_program(bin_dir() / "cubind-worker", "/nowhere/libnvrtc.so.13", toolchains().front().builtins);
  CompileService service(options);
  CHECK_THROWS_WITH(service.probe(), Contains("/nowhere/libnvrtc.so.13"));
  CHECK_THROWS_WITH(compile(service, good()), Contains("/nowhere/libnvrtc.so.13"));
  options.program = nvrtc_program("/nowhere/cubind-worker", "/nowhere/n", "/nowhere/b");
  CompileService none(options);
  CHECK_THROWS_WITH(none.probe(), Contains("/nowhere/cubind-worker"));
}

TEST_CASE("compile workers are started by exec and niced") {
  CompileServiceOptions options = newest();
  options.nice = CompileServiceOptions().nice;
  CompileService service(options);
  service.probe();
  const pid_t worker = *workers().begin();
  CHECK(std::filesystem::read_symlink("/proc/" + std::to_string(worker) + "/exe") ==
        std::filesystem::canonical(bin_dir() / "cubind-worker"));
  CHECK(getpriority(PRIO_PROCESS, static_cast<id_t>(worker)) >=
        std::min(getpriority(PRIO_PROCESS, 0) + 10, 19));
}

// Compiles with the header of this value alone.
CompileInput with_header(int value) {
  const auto file = std::make_shared<const CompilerFile>(
      CompilerFile::of("a.h", "#define A " + std::to_string(value) + "\n"));
  return {compile_request("#include \"a.h\"\nstatic_assert(A == " + std::to_string(value) +
                              ");\n__global__ void k(int* p) { *p = A; }",
                          {"k"}),
          std::make_shared<const SharedHeaders>(SharedHeaders{file->digest, {file}})};
}

TEST_CASE("a worker has the headers of each request whatever it was asked before") {
  for (const unsigned compiles_per_worker : {1000U, 1U}) {
    CompileServiceOptions options = newest();
    options.compiles_per_worker = compiles_per_worker;
    options.kept_bytes = 0;
    CompileService service(options);
    const CompileInput one = with_header(1);
    for (const CompileInput& input : {one, one, CompileInput(good()), one, with_header(2), one}) {
      const v1::CompileReply reply = compile(service, input);
      INFO(reply.log());
      CHECK(reply.outcome() == v1::CORRECT);
    }
  }
}

TEST_CASE("a worker precompiles headers for the requests that wait") {
  CompileService service(newest());
  const auto file = std::make_shared<const CompilerFile>(
      CompilerFile::of("a.h", "/*" + std::string(std::size_t{4} << 20, 'x') + "*/\n"));
  const auto headers = std::make_shared<const SharedHeaders>(SharedHeaders{file->digest, {file}});
  const auto input = [&](int n) {
    const std::string begin = "// " + std::to_string(n) + "\n#include \"a.h\"\n";  // another header for each
    return CompileInput(compile_request(begin + "__global__ void k(int* p) { *p = __LINE__; }", {"k"}),
                        headers);
  };
  const auto precompiles = [&] {
    const std::string fds = "/proc/" + std::to_string(*workers().begin()) + "/fd";
    return std::ranges::any_of(std::filesystem::directory_iterator(fds), [](const auto& fd) {
      return std::filesystem::read_symlink(fd).string().starts_with("/memfd:");
    });
  };
  CHECK(compile(service, input(0)).outcome() == v1::CORRECT);
  CHECK_FALSE(precompiles());
  ask(service, good());  // keeps the worker busy until both wait
  const Digest first = ask(service, input(1)), second = ask(service, input(2));
  CHECK(reply_to(service, first).cubin() == reply_to(service, second).cubin());
  CHECK(precompiles());
}

}  // namespace cubind::test
