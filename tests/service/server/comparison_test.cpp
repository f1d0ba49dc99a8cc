// Comparisons with a library that clients report.
#include <catch2/catch.hpp>

#include "tests/service/server/daemon_fixture.hpp"

namespace cubind::test {
namespace {

struct ComparedDaemon : TunedDaemon {
  v1::ReportComparisonRequest report_of(std::int64_t n, double gain = 1.25) {
    v1::ReportComparisonRequest request;
    *request.mutable_question() = vector_add(n);
    request.set_artifact(get(vector_add(n)).reply.artifact().digest());
    v1::LibraryComparison& comparison = *request.mutable_comparison();
    comparison.set_library("torch 2.13.0");
    comparison.set_gain(gain);
    comparison.set_gain_low(gain - 0.01);
    comparison.set_gain_high(gain + 0.01);
    comparison.set_samples(40);
    return request;
  }
  grpc::Status report(const v1::ReportComparisonRequest& request) {
    grpc::ClientContext context;
    v1::ReportComparisonReply reply;
    return stub().ReportComparison(&context, request, &reply);
  }
  std::vector<double> gains(std::int64_t n) {
    std::vector<double> gains;
    const Got got = get(vector_add(n));
    for (const auto& comparison : got.reply.provenance().over_library()) {
      gains.push_back(comparison.gain());
    }
    return gains;
  }
};

TEST_CASE("a reported comparison comes with the next answer to the same question and after a restart") {
  ComparedDaemon daemon;
  CHECK(daemon.gains(4096).empty());
  CHECK(daemon.gains(4096).empty());  // a kept reply
  const std::uint64_t generation = daemon.status().generation().number();
  REQUIRE(daemon.report(daemon.report_of(4096)).ok());
  CHECK(daemon.gains(4096) == std::vector{1.25});
  CHECK(daemon.status().generation().number() == generation);
  daemon.restart();
  CHECK(daemon.gains(4096) == std::vector{1.25});
}

TEST_CASE("a comparison is that of the bucket and a later one of the same library replaces it") {
  ComparedDaemon daemon;
  REQUIRE(daemon.report(daemon.report_of(4000)).ok());
  CHECK(daemon.gains(4096) == std::vector{1.25});
  REQUIRE(daemon.report(daemon.report_of(4096, 0.9)).ok());
  CHECK(daemon.gains(4000) == std::vector{0.9});
}

TEST_CASE("a comparison of a cubin that does not answer is refused") {
  ComparedDaemon daemon;
  v1::ReportComparisonRequest request = daemon.report_of(4096);
  request.set_artifact(std::string(32, 'x'));
  const grpc::Status status = daemon.report(request);
  CHECK(status.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
  CHECK_THAT(status.error_message(), Catch::Contains("another cubin answers"));
  CHECK(daemon.gains(4096).empty());
}

TEST_CASE("a comparison where no record of the bucket answers is refused") {
  ComparedDaemon daemon;
  v1::ReportComparisonRequest request = daemon.report_of(4096);
  request.mutable_question()->mutable_problem()->mutable_dims(0)->set_value(64);
  const grpc::Status status = daemon.report(request);
  CHECK(status.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
  CHECK_THAT(status.error_message(), Catch::Contains("no record of its bucket answers"));
}

TEST_CASE("a comparison that breaks a rule is refused at its field") {
  ComparedDaemon daemon;
  v1::ReportComparisonRequest request = daemon.report_of(4096);
  request.mutable_comparison()->set_library("torch\n");
  const grpc::Status status = daemon.report(request);
  CHECK(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK_THAT(status.error_message(), Catch::StartsWith("comparison.library: "));
}

}  // namespace
}  // namespace cubind::test
