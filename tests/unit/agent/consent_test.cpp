#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <thread>

#include "base/error.hpp"
#include "tests/unit/agent/job_world.hpp"
#include "tuner/agent/tuning/tune_job.hpp"

namespace cubind::test {
namespace {

bool waited(const MemoryChannel& channel) {
  for (const v1::Progress& told : channel.told) {
    if (told.state() == v1::Job::WAITING_FOR_IDLE_GPU) {
      return true;
    }
  }
  return false;
}

// A foreign process during calls [from, to).
std::function<bool()> foreign_during(int from, int to) {
  return [=, call = 0]() mutable {
    ++call;
    return call >= from && call < to;
  };
}

TEST_CASE("a foreign process before the job makes it wait and the GPU's memory is free meanwhile") {
  World world({.foreign = foreign_during(1, 4)});
  const v1::JobResult result = world.run();
  CHECK(result.status() == v1::JobResult::DONE);
  CHECK(waited(world.channel));
  CHECK(world.device.starts >= 2);
  CHECK(world.device.worked_beside_others == 0);
  CHECK_FALSE(result.provenance().timing().contended());
}

TEST_CASE("a foreign process that appears ends the block and what was seen meanwhile is not kept") {
  World world({.foreign = foreign_during(40, 43)});
  const v1::JobResult result = world.run();
  CHECK(waited(world.channel));
  CHECK(text(result.winner()) == "A=3,B=2");
  for (const auto& [key, block] : world.channel.blocks) {
    CHECK_FALSE(block.conditions().contended());
  }
}

TEST_CASE("a foreign process that is seen once is waited for once") {
  const int call = GENERATE(range(3, 30));
  World world({.foreign = foreign_during(call, call + 1)});
  world.run();
  CHECK(world.device.starts == 2);
}

TEST_CASE("with always samples are taken next to others and the record is provisional") {
  World world({.foreign = [] { return true; }, .answers_beside_others = true});
  world.options.when = TuneWhen::Always;
  const v1::JobResult result = world.run();
  REQUIRE(result.status() == v1::JobResult::DONE);
  CHECK_FALSE(waited(world.channel));
  CHECK(result.provenance().timing().contended());
  CHECK(result.provenance().provisional());
}

TEST_CASE("a provisional record is measured again without what was measured next to others") {
  World world({.foreign = [] { return true; }, .answers_beside_others = true});
  world.options.when = TuneWhen::Always;
  REQUIRE(world.run().provenance().provisional());
  world.device.behaviour().foreign = nullptr;
  world.device.measured.clear();
  world.channel.frame.set_only_when_idle(true);
  const v1::JobResult again = world.run();
  REQUIRE(again.status() == v1::JobResult::DONE);
  CHECK(text(again.winner()) == "A=3,B=2");
  CHECK_FALSE(world.device.measured.empty());
  CHECK_FALSE(again.provenance().timing().contended());
  CHECK_FALSE(again.provenance().provisional());
}

TEST_CASE("a job for an idle GPU alone is handed back at once where another process uses it") {
  World world({.foreign = [] { return true; }, .answers_beside_others = true});
  world.options.when = TuneWhen::Always;
  world.channel.frame.set_only_when_idle(true);
  const v1::JobResult result = world.run();
  CHECK(result.status() == v1::JobResult::INTERRUPTED);
  CHECK(waited(world.channel));
  CHECK(world.channel.blocks.empty());
  CHECK_FALSE(world.device.running);
}

TEST_CASE("a job that waits for an idle GPU can be handed back") {
  World world({.foreign = [] { return true; }});
  world.options.idle_poll = std::chrono::seconds(30);
  std::thread drain([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    world.stop.request(JobStop::Kind::HandBack);
  });
  CHECK_THROWS_AS(world.run(), Error);
  drain.join();
  CHECK_FALSE(world.device.running);
}

struct LentWorld : World {
  GpuLends lends{"here"};

  LentWorld() : World({}) {
    options.lend = [this] { return lends.of("GPU-1"); };
    device.behaviour().foreign = [this] { return lends.of("GPU-1").lenders.empty(); };
    options.idle_poll = std::chrono::seconds(30);
  }
  void lend(bool lent) {
    v1::Lends now;
    if (lent) {
      v1::LentGpu& gpu = *now.add_gpus();
      gpu.set_uuid("GPU-1");
      gpu.set_pid(static_cast<std::uint32_t>(::getpid()));
      gpu.set_host("here");
    }
    lends.replace(now);
    stop.wake();
  }
  int waits() const {
    return static_cast<int>(
        std::ranges::count(channel.told, v1::Job::WAITING_FOR_IDLE_GPU, &v1::Progress::state));
  }
};

TEST_CASE("a job that waits for an idle GPU goes on as soon as a caller lends it") {
  LentWorld world;
  std::thread caller;
  world.channel.on_told = [&](const v1::Progress& told) {
    if (told.state() == v1::Job::WAITING_FOR_IDLE_GPU && !caller.joinable()) {
      caller = std::thread([&] { world.lend(true); });
    }
  };
  const v1::JobResult result = world.run();
  REQUIRE(caller.joinable());
  caller.join();
  CHECK(result.status() == v1::JobResult::DONE);
  CHECK(world.waits() == 1);
  CHECK_FALSE(result.provenance().timing().contended());
  CHECK_FALSE(result.provenance().provisional());
}

TEST_CASE("a lend that ends while the job measures makes it wait and nothing of that request is kept") {
  LentWorld world;
  world.lend(true);
  std::thread caller;
  world.device.on_measure = [&, call = 0]() mutable {
    if (++call == 5) {
      world.lend(false);
      caller = std::thread([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        world.lend(true);
      });
    }
  };
  const v1::JobResult result = world.run();
  caller.join();
  CHECK(result.status() == v1::JobResult::DONE);
  CHECK(world.waits() >= 1);
  for (const auto& [key, block] : world.channel.blocks) {
    CHECK_FALSE(block.conditions().contended());
  }
}

TEST_CASE("while a GPU is lent and in use nevertheless the job says so each time it has looked") {
  LentWorld world;
  world.lend(true);
  world.options.idle_poll = std::chrono::milliseconds(5);
  world.device.behaviour().foreign = [call = 0]() mutable { return ++call <= 4; };
  world.run();
  CHECK(world.waits() >= 2);
  const auto told =
      std::ranges::find(world.channel.told, v1::Job::WAITING_FOR_IDLE_GPU, &v1::Progress::state);
  CHECK(told->is_lent());
}

}  // namespace
}  // namespace cubind::test
