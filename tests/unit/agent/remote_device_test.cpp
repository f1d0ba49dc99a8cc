#include "tuner/agent/device/remote_device.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <deque>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "tuner/agent/device/prepare_request.hpp"

namespace cubind {
namespace {

// Answers as scripted, CORRECT otherwise; keeps the requests.
class ScriptedLink final : public DeviceLink {
 public:
  void start() override { ++starts; }
  void stop() noexcept override { ++stops; }
  bool start_spare() override { return has_spare && ++starts > 0 && std::exchange(has_spare, false); }
  bool is_started() const override { return starts > stops; }
  void interrupt() noexcept override { interrupted = true; }
  CallResult call(const v1::DeviceRequest& request, std::chrono::milliseconds deadline,
                  const std::function<void()>& meanwhile) override {
    requests.push_back(request);
    std::this_thread::sleep_for(delay);
    if (meanwhile) {
      meanwhile();
    }
    deadlines.push_back(deadline);
    if (request.has_open() && !open_answers.empty()) {
      CallResult answer = open_answers.front();
      open_answers.pop_front();
      return answer;
    }
    if (request.has_open() && open_answer) {
      return *open_answer;
    }
    if (request.has_open() || answers.empty()) {
      v1::DeviceReply reply;
      reply.set_outcome(v1::CORRECT);
      return {reply, false, ""};
    }
    CallResult answer = answers.front();
    answers.pop_front();
    return answer;
  }

  std::optional<CallResult> open_answer;
  std::deque<CallResult> open_answers;  // before `open_answer`
  std::deque<CallResult> answers;
  std::vector<v1::DeviceRequest> requests;
  std::vector<std::chrono::milliseconds> deadlines;
  int starts = 0, stops = 0;  // starts: of fresh workers and spare ones
  std::chrono::milliseconds delay{0};
  bool has_spare = false;
  bool interrupted = false;
};

DeviceLink::CallResult sticky() {
  v1::DeviceReply reply;
  reply.set_outcome(v1::RUNTIME);
  reply.set_sticky(true);
  return {reply, false, ""};
}

struct Fixture {
  ScriptedLink link;
  JobStop stop;
  RemoteDevice remote{link, {}, stop};
  v1::DeviceReply prepare() {
    return remote.prepare(0, [] { return v1::PrepareProblem(); });
  }
};

TEST_CASE_METHOD(Fixture, "no worker is started before it is needed") {
  CHECK(link.starts == 0);
  remote.probe();
  CHECK(link.starts == 1);
}

TEST_CASE_METHOD(Fixture, "a setup is prepared once in a worker and again in the next one") {
  prepare();
  prepare();
  CHECK(link.requests.size() == 2);  // open, prepare
  remote.restart();
  prepare();
  CHECK(link.requests.size() == 4);
}

TEST_CASE_METHOD(Fixture, "after a sticky error the next request begins with a fresh worker") {
  link.answers = {sticky()};
  CHECK(remote.verify({}).outcome() == v1::RUNTIME);
  CHECK(remote.generation() == 1);
  remote.verify({});
  CHECK(link.starts == 2);
  CHECK(remote.generation() == 2);
}

TEST_CASE_METHOD(Fixture, "a worker that dies is a runtime fault and one that keeps silent a timeout") {
  link.answers = {{std::nullopt, false, "signal 11"}, {std::nullopt, true, "no answer"}};
  CHECK(remote.verify({}).outcome() == v1::RUNTIME);
  CHECK(remote.verify({}).outcome() == v1::TIMEOUT);
}

TEST_CASE_METHOD(Fixture,
                 "a reply without an outcome is a fault of ours and no outcome of the configuration") {
  v1::DeviceReply told;
  told.set_detail("table.json: holds no recording");
  link.answers = {{told, false, ""}, {v1::DeviceReply(), false, ""}};
  CHECK_THROWS_WITH(remote.verify({}), "table.json: holds no recording");
  CHECK_THROWS_WITH(remote.verify({}), "the device worker replied without an outcome");
}

TEST_CASE_METHOD(Fixture, "a device that rested is warmed up and one that did not is not") {
  remote.measure({});
  remote.measure({});
  CHECK(link.requests[1].measure().warm_up());
  CHECK_FALSE(link.requests[2].measure().warm_up());
  remote.restart();
  remote.measure({});
  CHECK(link.requests.back().measure().warm_up());
}

TEST_CASE_METHOD(Fixture, "a device that rested while its reply waited for other work is warmed up") {
  remote.measure({});
  remote.meanwhile(
      [] { std::this_thread::sleep_for(DeviceDeadlines().cools_down + std::chrono::milliseconds(1)); });
  remote.measure({});
  remote.measure({});
  CHECK_FALSE(link.requests[2].measure().warm_up());
  CHECK(link.requests[3].measure().warm_up());
}

TEST_CASE_METHOD(Fixture, "a spare worker is opened and no other one is started") {
  link.has_spare = true;
  remote.probe();
  CHECK_FALSE(link.has_spare);
  CHECK(link.starts == 1);
}

TEST_CASE_METHOD(Fixture, "a spare worker that does not open is replaced by a fresh one once") {
  link.has_spare = true;
  v1::DeviceReply lost;
  lost.set_detail("CUDA_ERROR_NO_DEVICE");
  link.open_answers = {{lost, false, ""}};
  SECTION("which opens") { CHECK(remote.probe().outcome() == v1::CORRECT); }
  SECTION("which does not open either") {
    link.open_answer = {lost, false, ""};
    CHECK_THROWS_AS(remote.probe(), Error);
  }
  CHECK(link.starts == 2);
}

TEST_CASE_METHOD(Fixture, "a GPU that another tuner holds is not asked for twice") {
  link.has_spare = true;
  v1::DeviceReply held;
  held.set_foreign_use(true);
  link.open_answer = {held, false, ""};
  CHECK(remote.probe().foreign_use());
  CHECK(link.starts == 1);
}

TEST_CASE_METHOD(Fixture, "work for meanwhile is done once while the worker has the next request") {
  prepare();
  std::vector<std::size_t> done_at;
  remote.meanwhile([&] { done_at.push_back(link.requests.size()); });
  remote.verify({});
  remote.verify({});
  CHECK(done_at == std::vector<std::size_t>{3});  // open, prepare, verify
}

TEST_CASE_METHOD(Fixture, "work for meanwhile waits until a worker is open") {
  std::vector<std::size_t> done_at;
  remote.meanwhile([&] { done_at.push_back(link.requests.size()); });
  remote.verify({});
  CHECK(done_at == std::vector<std::size_t>{2});
}

TEST_CASE_METHOD(Fixture, "a worker whose reply was not read because work meanwhile failed is ended") {
  prepare();
  remote.meanwhile([] { throw Error(ErrorCode::Aborted, "lease", "broken"); });
  CHECK_THROWS_AS(remote.verify({}), Error);
  CHECK(link.stops == 1);
  CHECK(remote.verify({}).outcome() == v1::CORRECT);
  CHECK(link.starts == 2);
}

TEST_CASE_METHOD(Fixture, "a stop kills the worker and the request ends with the job") {
  remote.probe();
  stop.request(JobStop::Kind::Drop);
  CHECK(link.interrupted);
  CHECK_THROWS_AS(remote.verify({}), Error);
}

TEST_CASE_METHOD(Fixture, "every request has a deadline") {
  prepare();
  remote.verify({});
  remote.measure({});
  for (const auto deadline : link.deadlines) {
    CHECK(deadline.count() > 0);
  }
}

TEST_CASE_METHOD(Fixture, "a preparation that kept silent for long lengthens no deadline after it") {
  link.delay = std::chrono::milliseconds(100);
  link.answers = {{std::nullopt, true, "no answer"}};
  CHECK(prepare().outcome() == v1::TIMEOUT);
  link.delay = {};
  prepare();
  remote.verify({});
  CHECK(link.deadlines.back() < DeviceDeadlines().run + 20 * std::chrono::milliseconds(100));
}

TEST_CASE("the time to prepare grows with the buffers and with the work of the reference") {
  v1::PrepareProblem request;
  CHECK(prepare_time(request) == std::chrono::seconds(90));  // the work is not known
  request.set_floor_flops(4);
  CHECK(prepare_time(request) == std::chrono::seconds(0));
  v1::BufferSpec& buffer = *request.add_buffers();
  buffer.set_type("f32");
  buffer.set_elements(5'000'000);
  CHECK(prepare_time(request) == std::chrono::milliseconds(2020));
  request.set_floor_flops(1'000'000'000'000);
  CHECK(prepare_time(request) == std::chrono::milliseconds(42'020));
  request.set_floor_flops(1'000'000'000'000'000'000);
  CHECK(prepare_time(request) == std::chrono::minutes(15));
}

TEST_CASE_METHOD(Fixture, "a GPU that another tuner holds is foreign use and no fault") {
  v1::DeviceReply taken;
  taken.set_foreign_use(true);
  link.open_answer = DeviceLink::CallResult{taken, false, ""};
  CHECK(remote.verify({}).outcome() == v1::CORRECT);
  CHECK(remote.foreign_use());
  CHECK(link.requests.size() == 1);
  CHECK(link.stops == 1);
}

TEST_CASE_METHOD(Fixture, "a device that cannot be opened is unavailable") {
  link.open_answer = DeviceLink::CallResult{std::nullopt, false, "exit code 1"};
  CHECK_THROWS_AS(remote.verify({}), Error);
}

TEST_CASE("the worker ends with its RemoteDevice") {
  ScriptedLink link;
  JobStop stop;
  { RemoteDevice(link, {}, stop).probe(); }
  CHECK(link.stops == 1);
}

TEST_CASE("a worker that is left open serves the next job, which opens it again") {
  ScriptedLink link;
  JobStop stop;
  {
    RemoteDevice first(link, {}, stop);
    first.prepare(0, [] { return v1::PrepareProblem(); });
    first.leave_open();
  }
  RemoteDevice second(link, {}, stop);
  second.prepare(0, [] { return v1::PrepareProblem(); });
  CHECK(link.starts == 1);
  REQUIRE(link.requests.size() == 4);  // open, prepare: twice
  CHECK(link.requests[2].has_open());
}

TEST_CASE("a worker in which anything went wrong is not left open") {
  v1::DeviceReply wrong;
  wrong.set_outcome(GENERATE(v1::WRONG_RESULT, v1::LAUNCH, v1::RUNTIME));
  ScriptedLink link;
  JobStop stop;
  link.answers = {{wrong, false, ""}};
  {
    RemoteDevice remote(link, {}, stop);
    remote.verify({});
    remote.leave_open();
  }
  CHECK_FALSE(link.is_started());
}

TEST_CASE("a worker in which a time was impossible is not left open") {
  v1::DeviceReply reply;
  reply.set_outcome(v1::CORRECT);
  v1::MeasuredItem& item = *reply.add_measured();
  item.set_outcome(v1::CORRECT);
  item.set_below_floor(true);
  ScriptedLink link;
  JobStop stop;
  link.answers = {{reply, false, ""}};
  {
    RemoteDevice remote(link, {}, stop);
    remote.measure({});
    remote.leave_open();
  }
  CHECK_FALSE(link.is_started());
}

TEST_CASE("a worker that died between two jobs is replaced") {
  ScriptedLink link;
  JobStop stop;
  {
    RemoteDevice first(link, {}, stop);
    first.probe();
    first.leave_open();
  }
  link.open_answers = {{std::nullopt, false, "signal 9"}};
  CHECK(RemoteDevice(link, {}, stop).probe().outcome() == v1::CORRECT);
  CHECK(link.starts == 2);
}

struct LentFixture : Fixture {
  GpuLend lend;
  RemoteDevice lent{link, {}, stop, {}, [this] { return lend; }};

  void lend_by(std::uint32_t process) {
    lend.lenders.emplace_back().set_pid(process);
    lend.since = std::chrono::steady_clock::now();
  }
};

TEST_CASE_METHOD(LentFixture, "every request tells the worker who lends the GPU") {
  lend_by(50);
  lent.verify({});
  REQUIRE(link.requests.size() == 2);
  for (const v1::DeviceRequest& request : link.requests) {
    REQUIRE(request.lenders_size() == 1);
    CHECK(request.lenders(0).pid() == 50);
  }
  lend.lenders.clear();
  lent.verify({});
  CHECK(link.requests.back().lenders().empty());
}

TEST_CASE_METHOD(LentFixture, "what is measured while a lend ends is void") {
  lend_by(50);
  lent.verify({});
  lent.meanwhile([&] {
    lend.lenders.clear();
    ++lend.ended;
  });
  CHECK(lent.measure({}).foreign_use());
  CHECK(lent.foreign_because() == "a process that lent the GPU goes on");
  CHECK_FALSE(lent.measure({}).foreign_use());
}

TEST_CASE_METHOD(LentFixture, "the GPU has rested since the last of the lend's beginning and our own work") {
  lend_by(50);
  lend.since -= std::chrono::seconds(60);
  lent.verify({});
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  lent.probe();
  const std::uint32_t rested = link.requests.back().rested_ms();
  CHECK(rested >= 200);
  CHECK(rested < 60'000);
  lend_by(51);
  lent.probe();
  CHECK(link.requests.back().rested_ms() < rested);
}

TEST_CASE_METHOD(LentFixture, "the reason for foreign use says why a lend does not count") {
  v1::DeviceReply used;
  used.set_outcome(v1::CORRECT);
  used.set_foreign_use(true);
  used.set_foreign_because("process 50 uses the GPU");
  link.answers = {{used, false, ""}};
  lend.refused = "process 50 lends the GPU, but there is no such process";
  lent.probe();
  CHECK(lent.foreign_because() ==
        "process 50 uses the GPU; process 50 lends the GPU, but there is no such process");
}

}  // namespace
}  // namespace cubind
