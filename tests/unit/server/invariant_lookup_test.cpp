// Where rows must be invariant nothing answers that was not compared with the default of today.
#include <catch2/catch.hpp>

#include "server/lookup/todays_trial.hpp"
#include "tests/unit/server/lookup_fixture.hpp"

namespace cubind::test {
namespace {

const Numerics kInvariant{Numerics::Kind::Invariant, "N"};
const Match kDefault{Departure::Default};

struct InvariantFixture : LookupFixture {
  RecordRow invariant_record(std::int64_t n, const DeviceClass& device = h200_class()) const {
    RecordRow row = record(n, device);
    row.question.numerics = kInvariant;
    row.verification.set_digest(bytes_of(verification_digest(*spec, kInvariant)));
    return row;
  }
  Question invariant_question(std::int64_t n) const {
    Question question = ask(n);
    question.key.numerics = kInvariant;
    question.verification = verification_digest(*spec, kInvariant);
    question.toolchain = CurrentToolchain{"nvrtc 13.0", {}};
    return question;
  }
};

TEST_CASE("where rows must be invariant a record answers for its problem and its bucket") {
  InvariantFixture f;
  f.add({f.invariant_record(8192)});
  CHECK(f.best(f.invariant_question(8192)).match.exact());
  CHECK(f.best(f.invariant_question(8191)).match == Match{Departure::Bucket});
}

TEST_CASE("where rows must be invariant a neighbouring problem does not answer") {
  InvariantFixture f;
  f.add({f.invariant_record(8192)});
  CHECK(f.best(f.invariant_question(16384)).match == kDefault);
}

TEST_CASE(
    "where rows must be invariant another toolchain's record does not answer and another driver's does") {
  InvariantFixture f;
  f.add({f.invariant_record(8192)});
  Question question = f.invariant_question(8192);
  question.driver = DriverVersion{12080, "570.1"};
  CHECK(f.best(question).match == Match{Departure::Stale});
  question.toolchain = CurrentToolchain{"nvrtc 13.1", {}};
  CHECK(f.best(question).match == kDefault);
}

TEST_CASE("where rows must be invariant another device class does not answer") {
  InvariantFixture f;
  DeviceFacts a100 = h200();
  a100.set_cc_major(8);
  a100.set_sm_count(108);
  const DeviceClass device = derive_device_class(a100, "facts");
  f.add({f.invariant_record(8192, device)}, {device});
  CHECK(f.best(f.invariant_question(8192)).match == kDefault);
}

TEST_CASE("where rows must be invariant a record of another revision does not answer") {
  InvariantFixture f;
  RecordRow row = f.invariant_record(8192);
  row.trial = Digest::of("the source was another one");
  f.add({row});
  CHECK(f.best(f.invariant_question(8192)).match == kDefault);
}

TEST_CASE("where rows must be invariant a record that was compared with another default does not answer") {
  InvariantFixture f;
  RecordRow row = f.invariant_record(8192);
  row.verification.set_digest(bytes_of(Digest::of("the default was another one")));
  f.add({row});
  CHECK(f.best(f.invariant_question(8192)).match == kDefault);
}

}  // namespace
}  // namespace cubind::test
