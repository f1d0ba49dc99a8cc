#include "client/cubindctl/tune/shape_list.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/refusal_of.hpp"
#include "tuner/spec/space.hpp"
#include "tuner/spec/spec_folder.hpp"

namespace cubind::ctl {
namespace {

std::string message(const std::string& text, const std::string& file) {
  return test::refusal_of([&] { read_shape_list(text, file); });
}

std::vector<Problem> problems_of(const KernelShapes& group) {
  std::vector<Problem> problems;
  for (const Shape& shape : group.shapes) {
    problems.push_back(shape.problem);
  }
  return problems;
}

}  // namespace

TEST_CASE("a shape list has problems and may name its kernel") {
  const ShapeList list = read_shape_list(
      R"({"kernel": "rmsnorm_forward", "problems": [{"N": 1024, "D": 8192, "T": "bf16"}, {"D": 1, "N": 0, "T": "bf16"}]})",
      "shapes.json");
  REQUIRE(list.size() == 1);
  CHECK(list[0].kernel == "rmsnorm_forward");
  REQUIRE(list[0].shapes.size() == 2);
  CHECK(to_string(list[0].shapes[0].problem) == "N=1024,D=8192,T=bf16");
  CHECK(list[0].shapes[1].problem.dim("N") == 0);
  CHECK(list[0].shapes[1].where == "shapes.json /problems/1");
}

TEST_CASE("types are accepted in the spellings of torch and NumPy and Triton") {
  for (const std::string spelling : {"bf16", "bfloat16", "torch.bfloat16", "tl.bfloat16", "BF16"}) {
    const ShapeList list =
        read_shape_list(R"({"problems": [{"N": 1, "T": ")" + spelling + R"("}]})", "shapes.json");
    CHECK(list[0].shapes[0].problem.type("T") == DType::Bf16);
  }
}

TEST_CASE("true and false are flags") {
  const ShapeList list = read_shape_list(R"({"problems": [{"N": 1, "CAUSAL": true}]})", "shapes.json");
  CHECK(list[0].shapes[0].problem.dim("CAUSAL") == 1);
}

TEST_CASE("a list with more problems than one call tunes is refused at the first too many") {
  std::string text = "N\n";
  for (int i = 0; i < 1000; ++i) {
    text += std::to_string(i) + "\n";
  }
  CHECK(read_shape_list(text, "shapes.csv").at(0).shapes.size() == 1000);
  CHECK_THAT(message(text + "1000\n", "shapes.csv"),
             Catch::StartsWith("shapes.csv line 1002: is one too many"));
}

TEST_CASE("the three formats of a shape list say the same") {
  const ShapeList json = read_shape_list(
      R"({"kernel": "scale", "problems": [{"N": 1, "C": true, "T": "bf16"}, {"N": 2, "C": false, "T": "f16"}]})",
      "shapes.json");
  const ShapeList lines = read_shape_list(
      "{\"kernel\": \"scale\", \"N\": 1, \"C\": true, \"T\": \"torch.bfloat16\"}\r\n\n"
      "{\"N\": 2, \"C\": false, \"T\": \"half\"}",
      "shapes.jsonl");
  const ShapeList csv =
      read_shape_list("kernel,N,C,T\r\nscale,1,true,bfloat16\r\n\r\nscale,2,False,fp16", "shapes.CSV");
  for (const ShapeList& list : {json, lines, csv}) {
    REQUIRE(list.size() == 1);
    CHECK(list[0].kernel == "scale");
    CHECK(problems_of(list[0]) == problems_of(json[0]));
  }
}

TEST_CASE("a list whose name says nothing of its format is read as JSON and a fault says so") {
  CHECK(read_shape_list("{\"problems\": [{\"N\": 1}]}", "shapes.txt").size() == 1);
  CHECK_THAT(
      message("{\"N\": 1}\n{\"N\": 2}", "shapes.txt"),
      Catch::StartsWith("shapes.txt line 2, column 1: ") &&
          Catch::EndsWith("; it was read as JSON: the name of a list with a problem a line ends in .jsonl "
                          "or .csv"));
}

TEST_CASE("a list holds several kernels in each format and their problems have names of their own") {
  const ShapeList json = read_shape_list(
      R"({"kernel": "a", "problems": [{"N": 1, "T": "f16"}, {"kernel": "b", "M": 2, "N": 1, "T": "f16"}, {"N": 2, "T": "f16"}]})",
      "shapes.json");
  const ShapeList lines = read_shape_list(
      "{\"kernel\": \"a\", \"N\": 1, \"T\": \"f16\"}\n"
      "{\"kernel\": \"b\", \"M\": 2, \"N\": 1, \"T\": \"f16\"}\n{\"kernel\": \"a\", \"N\": 2, \"T\": "
      "\"f16\"}",
      "shapes.jsonl");
  for (const ShapeList& list : {json, lines}) {
    REQUIRE(list.size() == 2);
    CHECK(list[0].kernel == "a");
    CHECK(list[0].shapes.size() == 2);
    CHECK(list[1].kernel == "b");
    CHECK(list[1].shapes.size() == 1);
  }
  CHECK(lines[0].shapes[1].where == "shapes.jsonl line 3");
  const ShapeList csv = read_shape_list("kernel,N\na,1\nb,1\n", "shapes.csv");  // alike, of two kernels
  CHECK(csv.size() == 2);
}

TEST_CASE("quotes and spaces and a byte order mark are no part of a CSV cell") {
  const ShapeList list =
      read_shape_list("\xef\xbb\xbf\"N\" , T \n \"1\",\t\"dtype('float16')\" \n", "shapes.csv");
  CHECK(to_string(list.at(0).shapes.at(0).problem) == "N=1,T=f16");
}

TEST_CASE("the shipped kernels take the problems of the list that their table is made from") {
  constexpr DeviceConstants kH200{132, 232448, 62914560, 90};
  const KnownSpecs known = load_specs({test::source_dir() / "variants"});
  const ShapeList list =
      read_shape_list(read_file(test::source_dir() / "variants/shapes.jsonl"), "shapes.jsonl");
  CHECK_FALSE(list.empty());
  for (const KernelShapes& group : list) {
    const KernelSpec& spec = *known.specs.at(group.kernel);
    for (const Shape& shape : group.shapes) {
      INFO(shape.where);
      CHECK(default_configuration(spec, spec.canonicalize(shape.problem, "problem"), kH200));
    }
  }
}

}  // namespace cubind::ctl
