// What callers send that is unusually large or strange costs themselves alone.
#include <catch2/catch.hpp>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <numeric>
#include <set>
#include <thread>

#include "base/clock.hpp"
#include "base/file.hpp"
#include "base/json.hpp"
#include "base/unique_fd.hpp"
#include "server/service/context.hpp"
#include "server/store/store.hpp"
#include "tests/service/server/daemon_fixture.hpp"
#include "tests/support/paths.hpp"

namespace cubind::test {
namespace {

TEST_CASE("a compressed request is refused before it is inflated") {
  DaemonFixture daemon;
  for (const grpc_compression_algorithm algorithm : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    for (const std::size_t bytes : {100, 100 << 20}) {
      v1::GetVariantRequest request = vector_add(4096);
      request.set_job(std::string(bytes, 'x'));
      grpc::ClientContext context;
      context.set_compression_algorithm(algorithm);
      v1::GetVariantReply reply;
      const grpc::Status status = daemon.stub().GetVariant(&context, request, &reply);
      CHECK(status.error_code() == grpc::StatusCode::UNIMPLEMENTED);
      CHECK_THAT(status.error_message(), Catch::Matchers::Contains("is disabled"));
    }
  }
  CHECK(daemon.status().agents() == 0);
}

/// vector_add with 7.7 million combinations of which none is valid.
void write_endless_kernel(const std::filesystem::path& folder) {
  create_folders(folder);
  for (const char* name : {"vector_add", "common"}) {
    std::filesystem::copy(source_dir() / "variants" / name, folder / name);
  }
  const auto file = folder / "vector_add" / "vector_add.json";
  Json spec = Json::parse(read_file(file));
  spec["name"] = "endless";
  for (const char* name : {"X1", "X2", "X3", "X4"}) {
    for (int value = 1; value <= 20; ++value) {
      spec["tunables"][name].push_back(value);
    }
    for (Json& configuration : spec["default"]) {
      configuration[name] = 1;
    }
  }
  spec["launches"][0]["shared_bytes"] = "X1 + X2 + X3 + X4";
  spec["constraints"].push_back("X1 + X2 + X3 + X4 + N < 0");
  write_file_atomic(file, spec.dump());
}

TEST_CASE("questions whose default is not valid make no other caller wait") {
  TunedDaemon daemon;
  write_endless_kernel(daemon.folder() / "kernels");
  daemon.config().kernels.push_back(daemon.folder() / "kernels");
  daemon.restart();
  v1::GetVariantRequest endless = vector_add(4096);
  endless.set_kernel("endless");
  const auto ask = [&] {
    return std::async(std::launch::async, [&] {
      grpc::ClientContext context;
      v1::GetVariantReply reply;
      return daemon.stub().GetVariant(&context, endless, &reply);
    });
  };
  std::vector<std::future<grpc::Status>> walks(8);
  std::ranges::generate(walks, ask);
  for (int i = 0; i < 20; ++i) {
    CHECK(daemon.get(vector_add(4096), std::chrono::seconds(3)).status.ok());
  }
  for (auto& walk : walks) {
    const grpc::Status status = walk.get();
    CHECK(status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
    CHECK_THAT(status.error_message(), Catch::Contains("no valid configuration was found among the first"));
  }
}

TEST_CASE("a connection gets the limit of streams it may have") {
  DaemonFixture daemon;
  const UniqueFd connection(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  daemon.config().socket.string().copy(address.sun_path, sizeof(address.sun_path) - 1);
  REQUIRE(::connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
  const std::string hello("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0", 33);
  REQUIRE(::write(connection.get(), hello.data(), hello.size()) == 33);
  std::string answer(1000, ' ');
  const auto bytes = ::read(connection.get(), answer.data(), answer.size());
  const std::string most_streams("\0\x03\0\0\x03\xe8", 6);  // SETTINGS_MAX_CONCURRENT_STREAMS = 1000
  CHECK(answer.substr(0, static_cast<std::size_t>(std::max<ssize_t>(bytes, 0))).find(most_streams) !=
        std::string::npos);
}

TEST_CASE("a call whose caller has withdrawn before its turn does nothing") {
  DaemonFixture daemon;
  v1::TuneRequest request = tune_vector_add({4096});
  request.set_detach(true);
  daemon.tune(request);
  v1::CancelJobRequest cancel;
  cancel.set_id(daemon.jobs().at(0).id());
  std::promise<void> others_work;
  daemon.context().jobs.post([held = others_work.get_future().share()] { held.wait(); });
  grpc::ClientContext context;
  std::thread caller([&] {
    v1::CancelJobReply reply;
    daemon.stub().CancelJob(&context, cancel, &reply);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  context.TryCancel();
  caller.join();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  others_work.set_value();
  CHECK(daemon.jobs().size() == 1);
}

TEST_CASE("made-up facts of a question make no label ambiguous for good") {
  TunedDaemon daemon;
  v1::DeviceFacts made_up = h200_facts();
  made_up.set_sm_count(131);
  CHECK(daemon.get(vector_add(8192, made_up)).status.ok());
  v1::GetVariantRequest wanted = vector_add(16384, made_up);
  wanted.set_tune(v1::NEVER);
  CHECK(daemon.get(wanted).status.ok());
  const auto by_label = [&] {
    v1::GetVariantRequest request = vector_add(4096);
    request.mutable_device()->set_label("nvidia-h200");
    return daemon.get(request).status.error_message();
  };
  CHECK(by_label().empty());
  daemon.restart();
  CHECK(by_label().empty());
  CHECK(daemon.status().devices_size() == 1);
}

TEST_CASE("a class without records is known by its label while an agent offers it") {
  DaemonFixture daemon;
  v1::GetVariantRequest request = vector_add(4096);
  request.mutable_device()->set_label("nvidia-h200");
  request.set_tune(v1::NEVER);
  CHECK(daemon.get(request).status.error_code() == grpc::StatusCode::NOT_FOUND);
  {
    AutoAgent agent(daemon.address(), hello_with(h200_facts()));
    DaemonFixture::eventually([&] { return daemon.status().agents() == 1; });
    CHECK(daemon.get(request).status.error_code() != grpc::StatusCode::NOT_FOUND);
  }
  DaemonFixture::eventually([&] { return daemon.status().agents() == 0; });
  CHECK(daemon.get(request).status.error_code() == grpc::StatusCode::NOT_FOUND);
}

/// A store with many jobs that have ended, as misses that fail leave them.
struct ManyJobs : DaemonFixture {
  explicit ManyJobs(int count) {
    context().store.write([&](StoreWriter& writer) {
      for (int i = 0; i < count; ++i) {
        JobRow job;
        job.id = "job" + std::to_string(100'000 + i);
        job.key = Digest::of(job.id);
        job.question.kernel = "vector_add";
        job.question.problem = {{{"N", i + 1}}, {{"T", DType::F32}}, {}, ""};
        job.state = v1::Job::FAILED;
        job.shown().set_error(std::string(300, 'e'));
        job.shown().set_created_at(iso8601_utc(std::chrono::system_clock::now()));
        job.shown().set_finished_at(job.shown().created_at());
        writer.put_job(job);
      }
    });
  }
  grpc::Status cancel(const std::string& id) {
    grpc::ClientContext context;
    v1::CancelJobRequest request;
    request.set_id(id);
    v1::CancelJobReply reply;
    return stub().CancelJob(&context, request, &reply);
  }
};

TEST_CASE("more jobs than a message holds are listed page by page") {
  ManyJobs daemon(12'000);
  std::set<std::string> ids;
  for (const v1::Job& job : daemon.jobs(true)) {
    ids.insert(job.id());
  }
  CHECK(ids.size() == 12'000);
}

TEST_CASE("a page of jobs is no larger than asked and a token of no reply is refused") {
  ManyJobs daemon(3);
  v1::ListJobsRequest request;
  request.set_include_ended(true);
  request.set_page_size(2);
  v1::ListJobsReply reply;
  grpc::ClientContext context, other;
  REQUIRE(daemon.stub().ListJobs(&context, request, &reply).ok());
  CHECK(reply.jobs_size() == 2);
  CHECK_FALSE(reply.next_page_token().empty());
  request.set_page_token("2");
  CHECK(daemon.stub().ListJobs(&other, request, &reply).error_message() ==
        "page_token: is not the next_page_token of a reply to ListJobs");
}

TEST_CASE("a daemon that starts forgets all but the last ten thousand ended jobs") {
  ManyJobs daemon(10'500);
  daemon.restart();
  DaemonFixture::eventually([&] { return daemon.jobs(true).size() == kMaxEndedJobs; });
  CHECK(daemon.cancel("job110499").error_code() == grpc::StatusCode::FAILED_PRECONDITION);
  CHECK(daemon.cancel("job100000").error_code() == grpc::StatusCode::NOT_FOUND);
}

}  // namespace
}  // namespace cubind::test
