// A caller lends the GPU that it uses: while its call lives, jobs measure there.
#include <catch2/catch.hpp>

#include <future>

#include "base/error.hpp"
#include "base/process_host.hpp"
#include "base/subprocess.hpp"
#include "tests/support/tiny_daemon.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

// A process with a context on the replayed device.
class User {
 public:
  User() : process_(start()) {}
  ~User() { end(); }
  std::uint32_t id() const { return static_cast<std::uint32_t>(process_.pid()); }
  void end() { process_.kill_group(); }

 private:
  static Subprocess start() {
    SubprocessOptions options;
    options.program = "/bin/sleep";
    options.arguments = {"600"};
    return Subprocess::spawn(options);
  }
  Subprocess process_;
};

v1::LentGpu lent_by(const Connection& connection, const User& user) {
  v1::LentGpu lent;
  lent.set_uuid("replay-" + offered_device(connection).facts().replay_table().substr(0, 12));
  lent.set_pid(user.id());
  lent.set_host(process_host());
  return lent;
}

std::optional<v1::Job> only_job(const Connection& connection) {
  const v1::ListJobsReply reply = connection.list_jobs(true, kPatience);
  return reply.jobs_size() == 1 ? std::optional(reply.jobs(0)) : std::nullopt;
}

bool waits(const Connection& connection) {
  const auto job = only_job(connection);
  return job && job->state() == v1::Job::WAITING_FOR_IDLE_GPU;
}

// A job that waits since a process uses the device.
struct UsedGpu {
  User user;
  TinyDaemon daemon;
  Connection connection;

  explicit UsedGpu(std::vector<std::uint32_t> others = {}, int pace_us = 0)
      : daemon({.users = with(user.id(), std::move(others)), .pace_us = pace_us}),
        connection(daemon->connect()) {
    v1::TuneRequest request = tune_request({tiny_problem(2)});
    request.set_detach(true);
    connection.tune(
        request, [](const v1::TuneEvent&) {}, {}, kPatience);
    REQUIRE(eventually([&] { return waits(connection); }));
  }
  static std::vector<std::uint32_t> with(std::uint32_t user, std::vector<std::uint32_t> others) {
    others.push_back(user);
    return others;
  }
  v1::TuneRequest lending(const User& lender) const {
    v1::TuneRequest request = tune_request({tiny_problem(2)});
    *request.mutable_lent() = lent_by(connection, lender);
    return request;
  }
  v1::GetVariantRequest waiting() const {
    v1::GetVariantRequest request = question(connection, tiny_problem(2));
    request.set_on_miss(v1::WAIT);
    return request;
  }
};

v1::TuneEvent last_of(const Connection& connection, const v1::TuneRequest& request,
                      const std::stop_token& stop = {}) {
  v1::TuneEvent last;
  connection.tune(
      request, [&](const v1::TuneEvent& event) { last = event; }, stop, kPatience);
  return last;
}

TEST_CASE("a job that waits for a process measures while that process lends the GPU") {
  UsedGpu gpu;
  CHECK_THAT(only_job(gpu.connection)->note(),
             StartsWith("process " + std::to_string(gpu.user.id()) + " uses the GPU"));
  const v1::TuneEvent last = last_of(gpu.connection, gpu.lending(gpu.user));
  CHECK(last.job().state() == v1::Job::DONE);
  CHECK_FALSE(last.provenance().provisional());
  CHECK(last.job().note().empty());
}

TEST_CASE("a question that waits lends the GPU too and gets the winner") {
  UsedGpu gpu;
  CHECK_THAT(gpu.connection.get_variant(gpu.waiting(), kPatience).why(), Contains("uses the GPU"));
  v1::GetVariantRequest request = gpu.waiting();
  *request.mutable_lent() = lent_by(gpu.connection, gpu.user);
  const v1::GetVariantReply reply = gpu.connection.get_variant(request, kPatience);
  CHECK(reply.provenance().evidence() == v1::REPLAYED);
  CHECK_FALSE(reply.provenance().provisional());
}

TEST_CASE("the lend ends with the call and the job waits again") {
  UsedGpu gpu({}, 20'000);
  std::stop_source stop;
  const auto leave = [&](const v1::TuneEvent& event) {
    if (event.job().state() == v1::Job::RUNNING) {
      stop.request_stop();
    }
  };
  CHECK_THROWS_AS(gpu.connection.tune(gpu.lending(gpu.user), leave, stop.get_token(), std::nullopt), Error);
  CHECK(eventually([&] { return waits(gpu.connection); }));
  gpu.user.end();
  CHECK(eventually([&] { return only_job(gpu.connection)->state() == v1::Job::DONE; }));
}

TEST_CASE("two processes use the GPU and the job measures once both lend it") {
  User other;
  UsedGpu gpu({other.id()});
  auto first = std::async(std::launch::async, [&] { return last_of(gpu.connection, gpu.lending(gpu.user)); });
  const std::string others = "process " + std::to_string(other.id()) + " uses the GPU";
  CHECK(eventually([&] { return only_job(gpu.connection)->note().starts_with(others); }));
  CHECK(last_of(gpu.connection, gpu.lending(other)).job().state() == v1::Job::DONE);
  CHECK(first.get().job().state() == v1::Job::DONE);
}

TEST_CASE("a question that waits ends with the reason where its lend does not count") {
  UsedGpu gpu;
  v1::GetVariantRequest request = gpu.waiting();
  *request.mutable_lent() = lent_by(gpu.connection, gpu.user);
  request.mutable_lent()->set_host("elsewhere");
  CHECK_THAT(gpu.connection.get_variant(request, kPatience).why(),
             Contains("but runs on another machine or in another container"));
}

TEST_CASE("a lend without a process is refused and so is one of a call that does not wait") {
  TinyDaemon daemon;
  const Connection connection = daemon->connect();
  v1::TuneRequest request = tune_request({tiny_problem(2)});
  request.mutable_lent()->set_uuid("GPU-1");
  request.mutable_lent()->set_host("here");
  CHECK_THROWS_WITH(last_of(connection, request), Contains("lent.pid: is missing"));
  request.set_detach(true);
  CHECK_THROWS_WITH(last_of(connection, request), Contains("lent: does not go with `detach`"));
}

}  // namespace
}  // namespace cubind::test
