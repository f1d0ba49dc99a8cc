#include "client/answer.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "tests/fakes/sample_reply.hpp"
#include "tests/support/refusal_of.hpp"

namespace cubind {
namespace {

Problem problem(std::int64_t n, std::int64_t d = 4096) {
  return {{{"N", n}, {"D", d}}, {{"T", DType::F16}}, {}, ""};
}

Answer answer_of(v1::GetVariantReply reply, const std::string& cubin = "cubin") {
  return Answer(std::make_shared<v1::GetVariantReply>(std::move(reply)),
                std::make_shared<const std::string>(cubin));
}

Answer sample(std::int64_t n = 1024) { return answer_of(test::sample_reply(problem(n), "cubin")); }

ErrorCode code_of(const v1::GetVariantReply& reply, const std::string& cubin = "cubin") {
  return test::code_of([&] { answer_of(reply, cubin); });
}

}  // namespace

TEST_CASE("the rule answers another problem of the bucket with its own launch plan") {
  const std::optional<Answer> other = sample().for_problem(problem(1000));
  REQUIRE(other);
  CHECK(other->problem() == problem(1000));
  CHECK(other->plan().launches[0].grid == Dim3{4000, 1, 1});
  CHECK(other->plan().launches[1].grid == Dim3{1000, 2, 1});
  CHECK(other->plan().launches[0].parameters[2].value == 1000);
  CHECK(other->plan().launches[0].parameters[0].extent_bytes == 1000 * 4096 * 2);
  CHECK(other->configuration() == sample().configuration());
  CHECK(to_string(other->match()) == "bucket");
  CHECK(other->evidence() == Evidence::Measured);
}

TEST_CASE("both ends of the interval belong to the bucket and their neighbours do not") {
  CHECK(sample().for_problem(problem(257)));
  CHECK(sample().for_problem(problem(1024)));
  CHECK_FALSE(sample().for_problem(problem(256)));
  CHECK_FALSE(sample().for_problem(problem(1025)));
}

TEST_CASE("a problem with a record of its own is not answered by the rule of its bucket") {
  CHECK_FALSE(sample().for_problem(problem(512)));
}

TEST_CASE("a problem that violates a constraint is not answered by the rule") {
  CHECK_FALSE(sample().for_problem(problem(300)));
}

TEST_CASE("a problem for which another record of the bucket goes first is not answered by the rule") {
  v1::GetVariantReply reply = test::sample_reply(problem(1024), "cubin");
  reply.mutable_rule()->add_conditions("!(N % 8 == 1)");
  const Answer answer = answer_of(reply, "cubin");
  CHECK(answer.for_problem(problem(1000)));
  CHECK_FALSE(answer.for_problem(problem(1001)));
}

TEST_CASE("a reply whose own problem does not meet the conditions of its rule is refused") {
  v1::GetVariantReply reply = test::sample_reply(problem(1024), "cubin");
  reply.mutable_rule()->add_conditions("N < 1000");
  CHECK(code_of(reply) == ErrorCode::DataLoss);
}

TEST_CASE("a dim without an interval has to be equal") {
  CHECK_FALSE(sample().for_problem(problem(1000, 2048)));
}

TEST_CASE("other types or flags or scenarios are other questions") {
  Problem f32 = problem(1000);
  f32.types[0].type = DType::F32;
  Problem flagged = problem(1000);
  flagged.flags.push_back({"CAUSAL", 1});
  Problem skewed = problem(1000);
  skewed.scenario = "skewed";
  CHECK_FALSE(sample().for_problem(f32));
  CHECK_FALSE(sample().for_problem(flagged));
  CHECK_FALSE(sample().for_problem(skewed));
}

TEST_CASE(
    "the answer to the asked problem keeps its match also when it comes from another one of the bucket") {
  const std::optional<Answer> other = sample().for_problem(problem(1000));
  REQUIRE(other);
  const std::optional<Answer> back = other->for_problem(problem(1024));
  REQUIRE(back);
  CHECK(back->match().exact());
}

TEST_CASE("a cubin without the promised digest is refused") {
  CHECK(code_of(test::sample_reply(problem(1024), "cubin"), "cubiN") == ErrorCode::DataLoss);
}

TEST_CASE("an unknown departure is refused and not taken for a better match") {
  v1::GetVariantReply reply = test::sample_reply(problem(1024), "cubin");
  reply.mutable_provenance()->add_departures(static_cast<v1::Departure>(99));
  CHECK(code_of(reply) == ErrorCode::InvalidArgument);
}

TEST_CASE("the symbols are those of all launches of the rule") {
  CHECK(sample().entry_symbols() == std::vector<std::string>{"_Z10scale_rows", "_Z6finish"});
}

}  // namespace cubind
