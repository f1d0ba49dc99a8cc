// Evaluate: the agent's part is made up.
#include <catch2/catch.hpp>

#include <future>

#include "base/json.hpp"
#include "server/service/context.hpp"
#include "server/store/store.hpp"
#include "tests/service/server/daemon_fixture.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;

v1::EvaluateRequest judged_vector_add() {
  v1::EvaluateRequest request;
  request.set_kernel("vector_add");
  *request.add_problems() = vector_add(4096).problem();
  v1::SourceFile& file = *request.add_files();
  file.set_path("mine.cu");
  file.set_content("// any");
  return request;
}

struct Evaluated {
  grpc::Status status;
  v1::EvaluateReply reply;
  OrderedJson verdict() const { return OrderedJson::parse(reply.verdict_json()); }
  OrderedJson problem() const { return verdict()["problems"][0]; }
};

struct Judge : DaemonFixture {
  std::future<Evaluated> evaluate(const v1::EvaluateRequest& request,
                                  std::chrono::seconds deadline = kPatience) {
    return std::async(std::launch::async, [this, request, deadline] {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + deadline);
      Evaluated result;
      result.status = stub().Evaluate(&context, request, &result.reply);
      return result;
    });
  }
  /// The verdict where the source's trial ends so; a correct one takes 10 us, the baseline 20.
  Evaluated judged(const v1::EvaluateRequest& request, v1::Outcome outcome = v1::CORRECT,
                   const std::string& detail = "") {
    auto waiting = evaluate(request);
    const v1::LeaseGrant lease = agent.wait_for_lease();
    auto trials = fake_trials(lease, 2);
    REQUIRE(agent.send_batch(lease, batch_of({trials[0]}, 10, 20.0)));
    trials[1].header.set_outcome(outcome);
    trials[1].header.set_detail(detail);
    v1::Batch batch = batch_of({trials[1]}, outcome == v1::CORRECT ? 10 : 0, 10.0);
    if (outcome == v1::WRONG_RESULT) {
      batch.mutable_verifications(0)->set_outcome(outcome);
      batch.mutable_verifications(0)->set_worst_excess(7);
    } else if (outcome != v1::CORRECT) {
      batch.clear_verifications();
    }
    edit(batch);
    REQUIRE(agent.send_batch(lease, batch));
    const bool wins = outcome == v1::CORRECT;
    v1::JobResult result = result_of(lease, trials[wins ? 1 : 0], wins ? 10.0 : 20.0);
    result.mutable_provenance()->mutable_verification()->set_same_bits(!wins ||
                                                                       batch.verifications(0).same_bits());
    REQUIRE(agent.send_result(lease, result));
    return waiting.get();
  }
  std::vector<std::string> defined() {
    v1::ListKernelsRequest request;
    request.set_defined(true);
    v1::ListKernelsReply reply;
    grpc::ClientContext context;
    REQUIRE(stub().ListKernels(&context, request, &reply).ok());
    std::vector<std::string> names;
    for (const v1::Kernel& kernel : reply.kernels()) {
      if (kernel.name().starts_with("judged_")) {
        names.push_back(kernel.name());
      }
    }
    return names;
  }

  std::uint64_t trials() {
    std::uint64_t trials = 0;
    context().store.read([&](StoreReader& reader) { trials = reader.counts().trials; });
    return trials;
  }

  std::function<void(v1::Batch&)> edit = [](v1::Batch&) {};  // of what is sent of the source
  FakeAgent agent{address(), hello_with(h200_facts())};
};

}  // namespace

TEST_CASE("a verdict has the source's speed over the baseline and what it rests on, and nothing is kept") {
  Judge judge;
  const Evaluated done = judge.judged(judged_vector_add());
  INFO(done.status.error_message());
  REQUIRE(done.status.ok());
  CHECK(done.reply.outcome() == "correct");
  const OrderedJson verdict = done.verdict();
  CHECK(verdict["outcome"] == "correct");
  CHECK(verdict["gain"].get<double>() == Approx(2.0).epsilon(0.01));
  CHECK(verdict["gain_low"].get<double>() <= verdict["gain"].get<double>());
  CHECK(verdict["source"][0]["sha256"] == Digest::of("// any").hex());
  CHECK(verdict["task"]["name"] == "vector_add");
  CHECK(verdict["task"]["from"] == "daemon");
  CHECK(verdict["device"] == "nvidia-h200");
  CHECK(verdict["toolchain_sha256"]["nvrtc"].get<std::string>().size() == 64);
  const OrderedJson problem = done.problem();
  CHECK(problem["source"]["verifications"].size() == 1);
  CHECK(problem["baseline"]["blocks"].size() == 10);
  CHECK(problem["baseline"]["configuration"] == "THREADS=256,VECTOR=4,UNROLL=1");
  CHECK(judge.defined().empty());
  CHECK(judge.trials() == 0);
}

TEST_CASE("the source and the task's own are two configurations of one kernel") {
  Judge judge;
  v1::EvaluateRequest request = judged_vector_add();
  request.add_grid("cdiv(N, 512)");
  request.add_block("128");
  request.set_rounds(17);
  const auto waiting = judge.evaluate(request);
  const v1::LeaseGrant lease = judge.agent.wait_for_lease();
  CHECK(lease.rounds() == 17);
  REQUIRE(lease.listed_size() == 1);
  CHECK(lease.listed(0).values().rbegin()->name() == "CUBIND_BASELINE");
  CHECK(lease.listed(0).values().rbegin()->value() == 0);
  const OrderedJson spec = OrderedJson::parse(lease.spec().spec_json());
  CHECK(spec["launches"][0]["grid"][0] ==
        "CUBIND_BASELINE ? (cdiv(N, THREADS * VECTOR * UNROLL)) : (cdiv(N, 512))");
  CHECK(spec["launches"][0]["block"][0] == "CUBIND_BASELINE ? (THREADS) : (128)");
  CHECK(spec["tunables"]["VECTOR"] == OrderedJson::array({4}));
  CHECK(fake_trials(lease, 9).size() == 2);
}

TEST_CASE("the first file is the source whatever its headers are called") {
  Judge judge;
  v1::EvaluateRequest request = judged_vector_add();
  v1::SourceFile& header = *request.add_files();
  header.set_path("a_header.cuh");  // before mine.cu
  header.set_content("// any header");
  const Evaluated done = judge.judged(request);
  INFO(done.status.error_message());
  REQUIRE(done.status.ok());
  CHECK(done.verdict()["source"][0]["path"] == "mine.cu");
  CHECK(done.verdict()["source"][1]["path"] == "a_header.cuh");
}

TEST_CASE("what a source does wrong is its verdict") {
  const auto [outcome, detail, word] = GENERATE(
      table<v1::Outcome, std::string, std::string>({{v1::WRONG_RESULT, "N=4096,T=f32: c[7] departs", "wrong"},
                                                    {v1::WRONG_RESULT, "time refused: 0.1 us", "suspect"},
                                                    {v1::RUNTIME, "an illegal address", "wrong"},
                                                    {v1::COMPILE, "error: expected a ;", "refused"}}));
  Judge judge;
  const Evaluated done = judge.judged(judged_vector_add(), outcome, detail);
  INFO(done.status.error_message());
  REQUIRE(done.status.ok());
  CHECK(done.reply.outcome() == word);
  CHECK(done.problem()["detail"] == detail);
  CHECK_FALSE(done.verdict().contains("gain"));
}

TEST_CASE("a right source is doubted for what it rests on") {
  Judge judge;
  v1::EvaluateRequest request = judged_vector_add();
  std::string outcome = "correct", detail;
  SECTION("other bits, where it claims none") {
    judge.edit = [](v1::Batch& batch) { batch.mutable_verifications(0)->set_same_bits(false); };
    if (GENERATE(false, true)) {
      request.set_deterministic(true);
      outcome = "unreproducible";
      detail = "gave other bits";
    }
  }
  SECTION("a fault that did not repeat") {
    judge.edit = [](v1::Batch& batch) { batch.mutable_trials(0)->set_fault_count(1); };
    outcome = "unreproducible";
    detail = "a launch failed";
  }
  SECTION("an input that its code never reads") {
    judge.edit = [](v1::Batch& batch) {
      v1::EntryResources& entry = *batch.mutable_artifacts(0)->mutable_info()->mutable_entries(0);
      entry.set_loads_known(true);
      entry.add_loaded(0);
    };
    outcome = "suspect";
    detail = "never reads the input b";
  }
  SECTION("results of inputs that it has seen") {
    const double other = GENERATE(8.0, 11.0, 12.0);  // 20 % less, 10 % and 20 % more than on those
    judge.edit = [other](v1::Batch& batch) {
      for (v1::SampleBlock& block : *batch.mutable_blocks()) {
        for (double& sample : *block.mutable_samples_us()) {
          sample = block.index() % 2 == 1 ? other : sample;
        }
      }
    };
    outcome = other > 11.5 ? "suspect" : "correct";
    detail = other > 11.5 ? "faster where it may use what earlier launches have left" : "";
  }
  SECTION("results of inputs that it has seen, with slow rounds between") {
    judge.edit = [](v1::Batch& batch) {
      for (v1::SampleBlock& block : *batch.mutable_blocks()) {
        for (double& sample : *block.mutable_samples_us()) {
          const bool is_source = block.trial_key() == batch.trials(0).trial_key();
          sample = !is_source ? 12.0 : block.index() % 2 == 1 ? 12.0 : block.index() % 4 == 2 ? 100.0 : 6.0;
        }
      }
    };
    outcome = "suspect";
    detail = "faster where it may use what earlier launches have left";
  }
  SECTION("clocks that jump, which all rounds may have") {
    judge.edit = [](v1::Batch& batch) {
      for (v1::SampleBlock& block : *batch.mutable_blocks()) {
        const bool is_slow = (block.index() % 2 == 1) == (block.index() < 8);
        for (double& sample : *block.mutable_samples_us()) {
          sample = is_slow ? 13.0 : sample;
        }
      }
    };
  }
  const Evaluated done = judge.judged(request);
  INFO(done.status.error_message());
  REQUIRE(done.status.ok());
  CHECK(done.reply.outcome() == outcome);
  CHECK_THAT(done.problem().value("detail", ""), Contains(detail));
}

TEST_CASE("a source that is wrong at a later launch on the same inputs is unreproducible") {
  Judge judge;
  const std::uint32_t launches = GENERATE(2u, 3u);
  judge.edit = [&](v1::Batch& batch) { batch.mutable_verifications(0)->set_launches(launches); };
  const Evaluated done = judge.judged(judged_vector_add(), v1::WRONG_RESULT, "c[7] departs");
  INFO(done.status.error_message());
  REQUIRE(done.status.ok());
  CHECK(done.reply.outcome() == (launches == 2 ? "wrong" : "unreproducible"));
}

TEST_CASE("a verdict says what would pass although nothing was computed") {
  Judge judge;
  const double share = GENERATE(0.5, 0.587);
  judge.edit = [share](v1::Batch& batch) {
    batch.mutable_verifications(0)->set_blank_share(share);
    batch.mutable_verifications(0)->set_blank_output("c");
  };
  const Evaluated done = judge.judged(judged_vector_add());
  CHECK(done.reply.outcome() == "correct");
  CHECK(done.problem()["source"]["verifications"][0]["blank_share"] == share);
  CHECK(done.problem().contains("note") == (share > 0.5));
  if (share > 0.5) {
    CHECK_THAT(done.problem()["note"].get<std::string>(), Catch::StartsWith("58 % of c would pass as 0"));
  }
}

TEST_CASE("a kept source is a kernel of the daemon with its trials") {
  Judge judge;
  v1::EvaluateRequest request = judged_vector_add();
  request.set_keep(true);
  const Evaluated done = judge.judged(request);
  REQUIRE(done.status.ok());
  REQUIRE(judge.defined().size() == 1);
  CHECK(done.verdict()["kernel"] == judge.defined()[0]);
  CHECK(judge.trials() == 2);
}

TEST_CASE("a task whose reference fails has no verdict") {
  Judge judge;
  auto waiting = judge.evaluate(judged_vector_add());
  REQUIRE(judge.agent.fail(judge.agent.wait_for_lease(), "the reference failed: y was not written"));
  const grpc::Status status = waiting.get().status;
  CHECK(status.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
  CHECK_THAT(status.error_message(), Contains("the reference failed"));
  CHECK(judge.defined().empty());
}

TEST_CASE("a withdrawn call takes its job with it") {
  Judge judge;
  auto waiting = judge.evaluate(judged_vector_add(), std::chrono::seconds(2));
  judge.agent.wait_for_lease();
  CHECK(waiting.get().status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED);
  judge.agent.wait_for_end_of_lease();
  DaemonFixture::eventually([&] { return judge.jobs().empty() && judge.defined().empty(); });
}

TEST_CASE("a question that cannot be judged is refused at its field") {
  Judge judge;
  const auto error_of = [&](const v1::EvaluateRequest& request) {
    const grpc::Status status = judge.evaluate(request).get().status;
    CHECK(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
    return status.error_message();
  };
  v1::EvaluateRequest request = judged_vector_add();
  request.clear_files();
  CHECK_THAT(error_of(request), Contains("files: is empty"));
  request = judged_vector_add();
  request.clear_problems();
  CHECK_THAT(error_of(request), Contains("problems: is empty"));
  request = judged_vector_add();
  request.set_rounds(9);
  CHECK_THAT(error_of(request), Contains("rounds: 9 is not between 10 and 2000"));
  request = judged_vector_add();
  request.mutable_files(0)->set_path("../vector_add.cu");
  CHECK_THAT(error_of(request), Contains("a path is relative to the spec's folder and normalized"));
  CHECK(judge.defined().empty());
}

}  // namespace cubind::test
