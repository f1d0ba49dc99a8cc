#include "server/convert/questions.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "tests/support/manual_clock.hpp"
#include "tests/unit/server/vector_add_library.hpp"

namespace cubind::test {
namespace {

struct QuestionFixture {
  ManualClock clock;
  TempDir kernels_folder{"cubind-questions"};
  VectorAddLibrary kernels{clock};
  Index index;
  Fleet fleet;
  DefinedKernels defined{kernels_folder.path() / "defined"};
  QuestionReader reader{kernels, defined, index, fleet};

  static v1::GetVariantRequest request() {
    v1::GetVariantRequest request;
    request.set_kernel("vector_add");
    v1::NamedValue& dim = *request.mutable_problem()->add_dims();
    dim.set_name("N");
    dim.set_value(4096);
    v1::TypeBinding& type = *request.mutable_problem()->add_types();
    type.set_name("T");
    type.set_type("f32");
    v1::DeviceFacts& facts = *request.mutable_device()->mutable_facts();
    facts.set_name("NVIDIA H200");
    facts.set_pci_device_id(0x2335);
    facts.set_cc_major(9);
    facts.set_sm_count(132);
    facts.set_l2_bytes(62914560);
    facts.set_shared_optin_bytes(232448);
    facts.set_memory_bytes(150754820096);
    facts.set_memory_bus_bits(6144);
    return request;
  }
};

TEST_CASE("a question's defaults are serve and auto and every departure and a short wait for a compile") {
  QuestionFixture f;
  const VariantQuestion question = f.reader.read(f.request());
  CHECK(question.on_miss == OnMiss::Serve);
  CHECK(question.may_tune);
  CHECK_FALSE(question.is_sealed);
  CHECK_FALSE(question.accepted);
  CHECK(question.compile_wait == std::chrono::seconds(2));
  CHECK(question.longest_wait == std::chrono::seconds(30));
}

TEST_CASE("a question with tune=never may start a compile and a sealed one nothing") {
  QuestionFixture f;
  v1::GetVariantRequest request = f.request();
  request.set_tune(v1::NEVER);
  CHECK_FALSE(f.reader.read(request).may_tune);
  CHECK_FALSE(f.reader.read(request).is_sealed);
  request.set_tune(v1::SEALED);
  CHECK_FALSE(f.reader.read(request).may_tune);
  CHECK(f.reader.read(request).is_sealed);
}

TEST_CASE(
    "who waits for a measurement waits for a compile until the deadline unless the question says less") {
  QuestionFixture f;
  v1::GetVariantRequest request = f.request();
  request.set_on_miss(v1::WAIT);
  CHECK(f.reader.read(request).compile_wait >= std::chrono::hours(1));
  CHECK(f.reader.read(request).longest_wait >= std::chrono::hours(1));
  request.set_compile_wait_ms(300);
  CHECK(f.reader.read(request).compile_wait == std::chrono::milliseconds(300));
  CHECK(f.reader.read(request).longest_wait == std::chrono::milliseconds(300));
}

TEST_CASE("a question's policy is cold and stream and its numerics are tolerance unless it says otherwise") {
  QuestionFixture f;
  v1::GetVariantRequest request = f.request();
  const RecordQuestion key = f.reader.read(request).question.key;
  CHECK(to_string(key.policy) == "cold/3,stream");
  CHECK(to_string(key.numerics) == "tolerance");
  request.mutable_policy()->set_graph_launch(true);
  request.mutable_policy()->set_warm_l2(true);
  request.mutable_numerics()->set_kind(v1::Numerics::REPRODUCIBLE);
  const RecordQuestion other = f.reader.read(request).question.key;
  CHECK(to_string(other.policy) == "warm,graph");
  CHECK(to_string(other.numerics) == "reproducible");
}

TEST_CASE("numerics are invariant in a dim along which an output of the kernel has rows") {
  QuestionFixture f;
  v1::GetVariantRequest request = f.request();
  request.mutable_numerics()->set_kind(v1::Numerics::INVARIANT);
  request.mutable_numerics()->set_invariant_dim("N");
  CHECK(to_string(f.reader.read(request).question.key.numerics) == "invariant:N");
  request.mutable_numerics()->set_invariant_dim("M");
  CHECK_THROWS_WITH(
      f.reader.read(request),
      "numerics.invariant_dim: \"M\" is not a dim of vector_add along which an output has rows (there is N)");
}

TEST_CASE("a question is put in canonical form whatever the spelling and the order of its problem") {
  QuestionFixture f;
  v1::GetVariantRequest request = f.request();
  const RecordQuestion plain = f.reader.read(request).question.key;
  request.mutable_problem()->mutable_types(0)->set_type("torch.float32");
  request.mutable_device()->mutable_facts()->set_name("my own name for it");
  const RecordQuestion spelled = f.reader.read(request).question.key;
  CHECK(record_key(spelled) == record_key(plain));
}

TEST_CASE("a question of another flush method is asked again with today's") {
  QuestionFixture f;
  RecordQuestion stored = f.reader.read(f.request()).question.key;
  const DeviceClass device = f.reader.read(f.request()).question.device;
  stored.policy = {.warm_l2 = true, .flush_method = kFlushMethod - 1};
  CHECK(f.reader.read(stored, device).key.policy == Policy{.warm_l2 = true});
}

TEST_CASE("a caller without a driver asks without one") {
  QuestionFixture f;
  v1::GetVariantRequest request = f.request();
  CHECK_FALSE(f.reader.read(request).question.driver);
  request.mutable_device()->mutable_driver()->set_version("580.159.04");
  CHECK(f.reader.read(request).question.driver->version == "580.159.04");
}

}  // namespace
}  // namespace cubind::test
