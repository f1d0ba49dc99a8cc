#include "server/convert/judged_kernel.hpp"

#include <catch2/catch.hpp>

#include "base/json.hpp"
#include "tests/support/paths.hpp"
#include "tuner/spec/kernel_spec.hpp"

namespace cubind::test {
namespace {

TEST_CASE("the reference of a task is the task's own, also where it names no source") {
  const auto task = load_kernel_spec(source_dir() / "variants/vector_add/vector_add.json");
  SpecBundle bundle = task->bundle;
  OrderedJson json = OrderedJson::parse(bundle.spec_json);
  json["reference"].erase("source");
  bundle.spec_json = json.dump();
  const auto without = parse_kernel_spec(std::move(bundle));
  const auto judged =
      judged_kernel("judged_1", *without, without->defaults.at(0), {{"mine.cu", "// any"}}, {});
  CHECK(judged->source == "judged.cu");
  CHECK(judged->reference.source == "vector_add.cu");
}

TEST_CASE("a judged source that would fail the baseline's compile too is refused by its name") {
  const auto task = load_kernel_spec(source_dir() / "variants/vector_add/vector_add.json");
  const auto judge = [&](const SourceFile& header) {
    judged_kernel("judged_1", *task, task->defaults.at(0), {{"mine.cu", "// any"}, header}, {});
  };
  CHECK_NOTHROW(judge({"a.h", "#include \"/etc/passwd\""}));  // fails its own compile alone
  CHECK_THROWS_WITH(judge({"a.h", std::string("\0", 1)}), Catch::Contains("a.h: holds a zero byte"));
}

TEST_CASE("a fault in an expression of a judged source's launch is shown in the caller's text") {
  const auto task = load_kernel_spec(source_dir() / "variants/vector_add/vector_add.json");
  const auto judge = [&](const JudgedLaunch& launch) {
    judged_kernel("judged_1", *task, task->defaults.at(0), {{"mine.cu", "// any"}}, launch);
  };
  CHECK_NOTHROW(judge({{"cdiv(N, 256)"}, {"256"}, ""}));
  CHECK_THROWS_WITH(judge({{"N +"}, {}, ""}), Catch::Contains("/grid/0: \"N +\": column 4"));
  CHECK_THROWS_WITH(judge({{}, {"M"}, ""}), Catch::Contains("/block/0: \"M\": column 1"));
  CHECK_THROWS_WITH(judge({{}, {}, "1.5"}), Catch::Contains("/shared_bytes: \"1.5\": column"));
}

}  // namespace
}  // namespace cubind::test
