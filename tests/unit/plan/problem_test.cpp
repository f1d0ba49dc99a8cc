#include "plan/problem.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "tests/support/refusal_of.hpp"

namespace cubind::test {

TEST_CASE("a problem is read from its text in any order and printed by kind") {
  const Problem problem = parse_problem(" T = torch.bfloat16 , N=4096,D=128 , scenario=skewed");
  CHECK(problem.dim("N") == 4096);
  CHECK(problem.type("T") == DType::Bf16);
  CHECK(to_string(problem) == "N=4096,D=128,T=bf16,scenario=skewed");
  CHECK(parse_problem(to_string(problem)) == problem);
}

TEST_CASE("truth values are read as integers") {
  const Problem problem = parse_problem("CAUSAL=true,DROPOUT=false,BIAS=True,GATED=False");
  CHECK(problem.dim("CAUSAL") == 1);
  CHECK(problem.dim("DROPOUT") == 0);
  CHECK(problem.dim("BIAS") == 1);
  CHECK(problem.dim("GATED") == 0);
}

TEST_CASE("a value that is no value of a problem leaves it as it was") {
  Problem problem = parse_problem("N=4");
  CHECK_FALSE(put_value(problem, "T", "bf61"));
  CHECK(problem == parse_problem("N=4"));
  CHECK(put_value(problem, "T", "np.half"));
  CHECK(to_string(problem) == "N=4,T=f16");
}

TEST_CASE("an empty text is an empty problem") { CHECK(parse_problem("  ") == Problem{}); }

TEST_CASE("a part that is no problem is named in the refusal") {
  const auto refusal = [](const char* text) { return message_of([&] { parse_problem(text); }); };
  CHECK_THAT(refusal("N=4,D"), Catch::Contains("\"D\"") && Catch::Contains("NAME=VALUE"));
  CHECK_THAT(refusal("N=,D=4"), Catch::Contains("NAME=VALUE"));
  CHECK_THAT(refusal("N=4,,D=4"), Catch::Contains("NAME=VALUE"));
  CHECK_THAT(refusal("N=4,N=5"), Catch::Contains("\"N\" is given twice"));
  CHECK_THAT(refusal("N=4,N=f32"), Catch::Contains("\"N\" is given twice"));
  CHECK_THAT(refusal("T=bf15"), Catch::Contains("did you mean \"bf16\"?"));
  CHECK_THAT(refusal("N=1e3"), Catch::Contains("neither a 64-bit integer, a type, nor true or false"));
  CHECK_THAT(refusal("N=9223372036854775808"), Catch::Contains("neither a 64-bit integer, a type, nor true"));
}

TEST_CASE("a configuration is printed in its own order") {
  const Configuration configuration{{{"VECTOR", 8}, {"THREADS", 256}}};
  CHECK(to_string(configuration) == "VECTOR=8,THREADS=256");
  CHECK(configuration.value("THREADS") == 256);
  CHECK(!configuration.value("UNROLL"));
}

}  // namespace cubind::test
