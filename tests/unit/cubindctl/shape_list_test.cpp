#include "client/cubindctl/tune/shape_list.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "tests/support/paths.hpp"
#include "tuner/spec/space.hpp"
#include "tuner/spec/spec_folder.hpp"

namespace cubind::ctl {
namespace {

std::string message(const std::string& text, const std::string& file = "shapes.json") {
  try {
    read_shape_list(text, file);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::InvalidArgument);
    return error.what();
  }
  return "";
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

TEST_CASE("what is no integer and no type is reported at its own place") {
  CHECK(message(R"({"problems": [{"N": 1}, {"N": 2}, {"N": 3}, {"N": null}]})") ==
        "shapes.json /problems/3/N: expected an integer, a type in quotes, or true or false, found null");
  CHECK(message(R"({"problems": [{"D": "4096"}]})") ==
        "shapes.json /problems/0/D: expected an integer, found the string \"4096\"");
  CHECK(message(R"({"problems": [{"N": 1, "T": "bf166"}]})") ==
        "shapes.json /problems/0/T: \"bf166\" is not a type, did you mean \"bf16\"?");
  CHECK(
      message(R"({"problems": [{"N": 1, "T": "float"}]})") ==
      "shapes.json /problems/0/T: \"float\" is not a type: libraries disagree on it, write f32 (torch, C) or "
      "f64 (NumPy, Python)");
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
  CHECK(message("\n \n", "shapes.jsonl") == "shapes.jsonl: must not be empty");
  CHECK_THAT(message("", "shapes.csv"),
             Catch::StartsWith("shapes.csv: must not be empty: the first line names"));
  CHECK(message("N,D,T\n", "shapes.csv") == "shapes.csv below line 1: must not be empty");
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

TEST_CASE("a fault in JSON lines is reported with line and pointer") {
  CHECK(message("{\"N\": 1}\n\n{\"N\": null}", "shapes.jsonl") ==
        "shapes.jsonl line 3 /N: expected an integer, a type in quotes, or true or false, found null");
  CHECK_THAT(message("{\"N\": 1}\n{\"N\": }", "shapes.jsonl"),
             Catch::StartsWith("shapes.jsonl line 2, column 7: syntax error"));
  CHECK(message("{\"N\": 1}\n{\"N\": 1}", "shapes.jsonl") == "shapes.jsonl line 2: is the same as line 1");
  CHECK(message("{\"N\": 1}\n[1]", "shapes.jsonl") ==
        "shapes.jsonl line 2: expected an object, found an array");
  CHECK_THAT(message("{\"problems\": [{\"N\": 1}]}", "shapes.jsonl"), Catch::Contains("is a .json file"));
}

TEST_CASE("a list that is no object is reported with what one looks like") {
  CHECK(message("[{\"N\": 1}]", "shapes.json") ==
        "shapes.json: expected an object with \"problems\", as in {\"kernel\": \"scale\", \"problems\": "
        "[...]}, "
        "found an array");
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

TEST_CASE("in a list for several kernels each problem names its own") {
  CHECK(message("{\"kernel\": \"a\", \"N\": 1}\n{\"N\": 2}\n{\"kernel\": \"b\", \"N\": 2}", "shapes.jsonl") ==
        "shapes.jsonl line 2: names no kernel: in a list for several (a, b), each problem names its own");
  CHECK(message("kernel,N\na,1\n,2\n", "shapes.csv") ==
        "shapes.csv line 3, column 1 (kernel): must not be empty");
  CHECK(message("{\"kernel\": \"a\", \"N\": 1}\n{\"kernel\": \"b\", \"N\": 1}\n{\"kernel\": \"b\", \"M\": 1}",
                "shapes.jsonl") == "shapes.jsonl line 3: has the names M, line 2 has N");
}

TEST_CASE("a fault in a CSV cell is reported with line and column") {
  CHECK_THAT(
      message("N,T\n1,bf16\n2,bf166\n", "shapes.csv"),
      Catch::StartsWith("shapes.csv line 3, column 2 (T): \"bf166\" is neither an integer, a type, nor") &&
          Catch::Contains("did you mean \"bf16\"?"));
  CHECK_THAT(message("N,T\n4096.0,bf16\n", "shapes.csv"),
             Catch::Contains("line 2, column 1 (N): \"4096.0\""));
  CHECK(message("N\n-1\n", "shapes.csv") == "shapes.csv line 2, column 1 (N): -1 is below 0");
  CHECK_THAT(message("N,T\n1,\n", "shapes.csv"),
             Catch::StartsWith("shapes.csv line 2, column 2 (T): is empty"));
  CHECK(message("N,T\n1,bf16,3\n", "shapes.csv") ==
        "shapes.csv line 2: has 3 cells, the header has 2 columns");
  CHECK(message("T\nbf16\n", "shapes.csv") ==
        "shapes.csv line 2: a problem has at least one dim, as in {\"N\": 4096, \"T\": \"bf16\"}");
}

TEST_CASE("a CSV header is needed and names each column once") {
  CHECK_THAT(message("4096,bf16\n", "shapes.csv"),
             Catch::StartsWith("shapes.csv line 1, column 1 (4096): \"4096\" is not a name"));
  CHECK(message("N,T,N\n", "shapes.csv") ==
        "shapes.csv line 1, column 3 (N): the name stands twice in the header");
  CHECK(message("N;T\n1;bf16\n", "shapes.csv") ==
        "shapes.csv line 1: the columns are separated by commas, as in N,D,T");
}

TEST_CASE("quotes and spaces and a byte order mark are no part of a CSV cell") {
  const ShapeList list =
      read_shape_list("\xef\xbb\xbf\"N\" , T \n \"1\",\t\"dtype('float16')\" \n", "shapes.csv");
  CHECK(to_string(list.at(0).shapes.at(0).problem) == "N=1,T=f16");
  CHECK(message("N,S\n1,\"a\"\"b\n,c\"\n2,3\n", "shapes.csv").find("line 2, column 2 (S): \"a\\\"b\\n,c\"") !=
        std::string::npos);
}

TEST_CASE("quotes that do not match are reported at their cell") {
  CHECK(message("N,T\n1,\"bf16\n", "shapes.csv") ==
        "shapes.csv line 2, column 2: the quoted cell does not end");
  CHECK_THAT(message("N,T\n1,b\"f16\n", "shapes.csv"),
             Catch::Contains("line 2, column 2: text stands next to a quote"));
  CHECK_THAT(message("N,T\n\"1\"2,bf16\n", "shapes.csv"),
             Catch::Contains("line 2, column 1: text stands next to a quote"));
}

TEST_CASE("a CSV cell over several lines does not shift the lines that follow") {
  CHECK(message("N,scenario\n1,\"a\nb\"\n-1,c\n", "shapes.csv") ==
        "shapes.csv line 4, column 1 (N): -1 is below 0");
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
