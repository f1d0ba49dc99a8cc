#include "client/cubindctl/shape_list.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"

namespace cubind::ctl {
namespace {

std::string message(const std::string& text) {
  try {
    read_shape_list(text, "shapes.json");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::InvalidArgument);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a shape list has problems and may name its kernel") {
  const ShapeList list = read_shape_list(
      R"({"kernel": "rmsnorm_forward", "problems": [{"N": 1024, "D": 8192, "T": "bf16"}, {"D": 1, "N": 0, "T": "bf16"}]})",
      "shapes.json");
  CHECK(list.kernel == "rmsnorm_forward");
  REQUIRE(list.problems.size() == 2);
  CHECK(to_string(list.problems[0]) == "N=1024,D=8192,T=bf16");
  CHECK(list.problems[1].dim("N") == 0);
}

TEST_CASE("types are accepted in the spellings of torch and NumPy and Triton") {
  for (const std::string spelling : {"bf16", "bfloat16", "torch.bfloat16", "tl.bfloat16", "BF16"}) {
    const ShapeList list =
        read_shape_list(R"({"problems": [{"N": 1, "T": ")" + spelling + R"("}]})", "shapes.json");
    CHECK(list.problems[0].type("T") == DType::Bf16);
  }
}

TEST_CASE("true and false are flags") {
  const ShapeList list = read_shape_list(R"({"problems": [{"N": 1, "CAUSAL": true}]})", "shapes.json");
  CHECK(list.problems[0].dim("CAUSAL") == 1);
}

TEST_CASE("what is no integer and no type is told at its own place") {
  CHECK(message(R"({"problems": [{"N": 1}, {"N": 2}, {"N": 3}, {"N": null}]})") ==
        "shapes.json /problems/3/N: expected an integer, a type in quotes, or true or false, found null");
  CHECK(message(R"({"problems": [{"D": "4096"}]})") ==
        "shapes.json /problems/0/D: expected an integer, found the string \"4096\"");
  CHECK(message(R"({"problems": [{"N": 1, "T": "bf166"}]})") ==
        "shapes.json /problems/0/T: \"bf166\" is not a type, did you mean \"bf16\"?");
  CHECK(message(R"({"problems": [{"N": 1.5}]})") ==
        "shapes.json /problems/0/N: 1.5 is not written as an integer");
}

TEST_CASE("problems with other names than the first are refused") {
  CHECK(message(R"({"problems": [{"N": 1, "T": "f16"}, {"N": 1, "D": 2}]})") ==
        "shapes.json /problems/1: has the names D, N, /problems/0 has N, T");
}

TEST_CASE("a problem that is given twice is refused whatever the order of its names") {
  CHECK(message(R"({"problems": [{"N": 1, "D": 2}, {"N": 1, "D": 3}, {"D": 2, "N": 1}]})") ==
        "shapes.json /problems/2: is the same as /problems/0");
}

TEST_CASE("an empty list is refused") {
  CHECK(message(R"({"problems": []})") == "shapes.json /problems: must not be empty");
}

}  // namespace cubind::ctl
