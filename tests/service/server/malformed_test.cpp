#include <catch2/catch.hpp>

#include <algorithm>
#include <string_view>

#include "tests/service/server/daemon_fixture.hpp"

namespace cubind::test {
namespace {

struct Malformed {
  const char* what;
  std::function<void(v1::GetVariantRequest&)> spoil;
  const char* where;  // what the message begins with
  const char* cause;  // and holds
  grpc::StatusCode code = grpc::StatusCode::INVALID_ARGUMENT;
};

const std::vector<Malformed>& malformed_requests() {
  using Request = v1::GetVariantRequest;
  static const std::vector<Malformed> requests{
      {"no kernel", [](Request& r) { r.clear_kernel(); }, "kernel:", "is empty"},
      {"unknown kernel", [](Request& r) { r.set_kernel("vector_ad"); }, "kernel:", "vector_add",
       grpc::StatusCode::NOT_FOUND},
      {"kernel name too long", [](Request& r) { r.set_kernel(std::string(300, 'a')); }, "kernel:", "256"},
      {"control character", [](Request& r) { r.set_namespace_("a\nb"); },
       "namespace:", "control or format character"},
      {"no dims", [](Request& r) { r.mutable_problem()->clear_dims(); }, "problem.dims:", "missing"},
      {"dim out of range", [](Request& r) { r.mutable_problem()->mutable_dims(0)->set_value(-4); },
       "problem.dims[0].value:", "-4"},
      {"unknown dim", [](Request& r) { r.mutable_problem()->mutable_dims(0)->set_name("M"); },
       "problem.dims[0].name:", "is not a dim of vector_add"},
      {"unnamed dim", [](Request& r) { r.mutable_problem()->mutable_dims(0)->clear_name(); },
       "problem.dims[0].name:", "is empty"},
      {"dim given twice", [](Request& r) { *r.mutable_problem()->add_dims() = r.problem().dims(0); },
       "problem.dims[1].name:", "twice"},
      {"unknown flag", [](Request& r) { r.mutable_problem()->add_flags()->set_name("CAUSAL"); },
       "problem.flags[0].name:", "CAUSAL"},
      {"unknown scenario", [](Request& r) { r.mutable_problem()->set_scenario("skewed"); },
       "problem.scenario:", "skewed"},
      {"no type", [](Request& r) { r.mutable_problem()->clear_types(); }, "problem.types:", "missing"},
      {"unknown type", [](Request& r) { r.mutable_problem()->mutable_types(0)->set_type("fp12"); },
       "problem.types[0].type:", "fp12"},
      {"type that the kernel does not list",
       [](Request& r) { r.mutable_problem()->mutable_types(0)->set_type("i8"); },
       "problem.types[0].type:", "i8"},
      {"too many dims",
       [](Request& r) {
         for (int i = 0; i < 65; ++i) {
           r.mutable_problem()->add_dims()->set_name("N");
         }
       },
       "problem.dims:", "64"},
      {"no device", [](Request& r) { r.clear_device(); }, "device:", "give facts or a label"},
      {"unknown label", [](Request& r) { r.mutable_device()->set_label("nvidia-h3000"); },
       "device.label:", "nvidia-h3000", grpc::StatusCode::NOT_FOUND},
      {"missing fact", [](Request& r) { r.mutable_device()->mutable_facts()->set_sm_count(0); },
       "device.facts.sm_count:", "missing"},
      {"unknown flush method", [](Request& r) { r.mutable_policy()->set_flush_method(9); },
       "policy.flush_method:", "9 is not measured"},
      {"numerics without their dim",
       [](Request& r) { r.mutable_numerics()->set_kind(v1::Numerics::INVARIANT); },
       "numerics.invariant_dim:", "the dim is missing"},
      {"numerics of a dim that the kernel has not",
       [](Request& r) {
         r.mutable_numerics()->set_kind(v1::Numerics::INVARIANT);
         r.mutable_numerics()->set_invariant_dim("M");
       },
       "numerics.invariant_dim:", "\"M\" is not a dim of vector_add"},
      {"accept without its switch", [](Request& r) { r.add_accept(v1::BUCKET); },
       "accept:", "restrict_accept"},
      {"unspecified departure",
       [](Request& r) {
         r.set_restrict_accept(true);
         r.add_accept(v1::DEPARTURE_UNSPECIFIED);
       },
       "accept[0]", "0: this version knows no such departure"},
      {"short digest", [](Request& r) { r.add_have_artifacts("abc"); }, "have_artifacts[0]:", "32"},
      {"compile wait too long", [](Request& r) { r.set_compile_wait_ms(3600000); },
       "compile_wait_ms:", "60000"},
      {"unknown on_miss", [](Request& r) { r.set_on_miss(static_cast<v1::OnMiss>(7)); }, "on_miss:", "7"},
      {"unknown tune mode", [](Request& r) { r.set_tune(static_cast<v1::TuneMode>(7)); }, "tune:", "7"},
  };
  return requests;
}

TEST_CASE("a malformed request is refused with the field path and the cause and disturbs no later answer") {
  DaemonFixture daemon;
  AutoAgent agent(daemon.address(), hello_with(h200_facts()));
  daemon.tune(tune_vector_add({4096}));
  const std::string before = daemon.get(vector_add(4096)).reply.SerializeAsString();
  for (const Malformed& malformed : malformed_requests()) {
    CAPTURE(malformed.what);
    v1::GetVariantRequest request = vector_add(4096);
    malformed.spoil(request);
    const grpc::Status status = daemon.get(request).status;
    CHECK(status.error_code() == malformed.code);
    CHECK_THAT(status.error_message(), Catch::Matchers::StartsWith(malformed.where));
    // A cause that the place itself has words of says nothing.
    const std::size_t behind = std::string_view(malformed.where).size();
    CHECK_THAT(status.error_message().substr(std::min(behind, status.error_message().size())),
               Catch::Matchers::Contains(malformed.cause));
  }
  CHECK(daemon.get(vector_add(4096)).reply.SerializeAsString() == before);
}

TEST_CASE("tune without problems and with too many is refused with the limit") {
  DaemonFixture daemon;
  grpc::Status status;
  daemon.tune(tune_vector_add({}), &status);
  CHECK(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK_THAT(status.error_message(), Catch::Matchers::StartsWith("problems: is empty"));
  daemon.tune(tune_vector_add(std::vector<std::int64_t>(1001, 4096)), &status);
  CHECK(status.error_message() == "problems: has 1001 elements, the limit is 1000");
}

TEST_CASE("a Tune names the malformed one of its problems and what is wrong with its policy") {
  DaemonFixture daemon;
  grpc::Status status;
  daemon.tune(tune_vector_add({4096, -1}), &status);
  CHECK(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK_THAT(status.error_message(),
             Catch::Matchers::StartsWith("problems[1].dims[0].value:") && Catch::Matchers::Contains("-1"));
  v1::TuneRequest request = tune_vector_add({4096});
  request.mutable_policy()->set_flush_method(9);
  daemon.tune(request, &status);
  CHECK(status.error_code() == grpc::StatusCode::INVALID_ARGUMENT);
  CHECK_THAT(status.error_message(), Catch::Matchers::StartsWith("policy") && Catch::Matchers::Contains("9"));
}

TEST_CASE("tune without a device and without an offered GPU says what to do") {
  DaemonFixture daemon;
  v1::TuneRequest request = tune_vector_add({4096});
  request.clear_device();
  grpc::Status status;
  daemon.tune(request, &status);
  CHECK(status.error_code() == grpc::StatusCode::FAILED_PRECONDITION);
  CHECK_THAT(status.error_message(), Catch::Matchers::Contains("no agent is connected"));
}

TEST_CASE("a message above 4 MiB is refused and the daemon goes on") {
  DaemonFixture daemon;
  v1::GetVariantRequest request = vector_add(4096);
  request.set_job(std::string(5 << 20, 'x'));
  CHECK(daemon.get(request).status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED);
  CHECK(daemon.status().agents() == 0);
}

TEST_CASE("getting an artifact by a wrong digest names the field") {
  DaemonFixture daemon;
  v1::GetArtifactRequest request;
  request.set_digest("short");
  grpc::ClientContext context;
  v1::ArtifactChunk chunk;
  const auto reader = daemon.stub().GetArtifact(&context, request);
  CHECK_FALSE(reader->Read(&chunk));
  CHECK_THAT(reader->Finish().error_message(), Catch::Matchers::StartsWith("digest:"));
}

}  // namespace
}  // namespace cubind::test
