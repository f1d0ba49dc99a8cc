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

}  // namespace
}  // namespace cubind::test
