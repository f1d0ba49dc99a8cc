#include <catch2/catch.hpp>

#include <algorithm>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "tests/support/malformed.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/refusal_of.hpp"
#include "tests/unit/table/example_table.hpp"

namespace cubind {
namespace {

TEST_CASE("a printed table reads back equal") {
  const Table table = read_table(print_table(example_table()), "t.json");
  CHECK(print_table(table) == print_table(example_table()));
  CHECK(table.records == example_table().records);
}

TEST_CASE("a table of the first version reads back and prints the same bytes") {
  const std::string text = read_file(test::source_dir() / "tests/golden/formats/table.json");
  const Table table = read_table(text, "table.json");
  CHECK(table.records.size() == 2);
  CHECK(table.records[0].over_library.size() == 1);
  CHECK(std::ranges::count_if(table.trials, [](const TableTrial& t) { return t.measured_as.has_value(); }) ==
        8);
  CHECK(print_table(table) == text);
}

TEST_CASE("a trial that another one was measured for reads back with its name") {
  Table table = example_table();
  table.trials[0].measured_as = table.trials[1].context.trial;
  const std::string text = print_table(table);
  CHECK_THAT(text, Catch::Contains(R"("measured_as":")" + table.trials[1].context.trial.hex()));
  CHECK(print_table(read_table(text, "table.json")) == text);
}

TEST_CASE("printing sorts so that equal tables print the same bytes") {
  Table reversed = example_table();
  std::ranges::reverse(reversed.trials);
  CHECK(print_table(reversed) == print_table(example_table()));
  CHECK(table_digest(reversed) == table_digest(example_table()));
}

TEST_CASE("each record and trial is on a line of its own") {
  const std::string text = print_table(example_table());
  CHECK(std::ranges::count(text, '\n') == 12);
}

TEST_CASE("sizes sort by value and not as text") {
  Table table = example_table();
  TableRecord small = table.records[0];
  small.context.problem.dims[0].value = 128;
  table.records.push_back(small);
  const std::string text = print_table(table);
  CHECK(text.find("\"N\":128") < text.find("\"N\":4096"));
}

TEST_CASE("a table without trials has no member of that name") {
  Table table = example_table();
  table.trials.clear();
  CHECK(print_table(table).find("\"trials\"") == std::string::npos);
  CHECK(read_table(print_table(table), "t.json").trials.empty());
}

Table compared_table() {
  Table table = example_table();
  table.records[0].over_library = {test::gain_over("torch 2.12.1", 1.25, 1.125, 1.5, 40),
                                   test::gain_over("torch 2.13.0", 0.5, 0.5, 0.5, 9)};
  return table;
}

TEST_CASE("comparisons with libraries are printed where there are any and read back equal") {
  CHECK(print_table(example_table()).find("over_library") == std::string::npos);
  const Table read = read_table(print_table(compared_table()), "t.json");
  CHECK(read.records == compared_table().records);
}

TEST_CASE("a comparison that breaks a rule is refused at its member") {
  const std::string text = print_table(compared_table());
  const auto refused = [&](const std::string& from, const std::string& to) {
    return test::refused_at([&] { read_table(replaced(text, from, to), "t.json"); });
  };
  CHECK(refused("\"gain_high\":1.5", "\"gain_high\":1.2") == "t.json /records/0/over_library/0/gain");
  CHECK(refused("torch 2.13.0", "torch 2.12.1") == "t.json /records/0/over_library/1/library");
  CHECK(refused("\"gain_low\":1.125", "\"gain_low\":-1") == "t.json /records/0/over_library/0/gain_low");
  CHECK(refused("torch 2.13.0", "") == "t.json /records/0/over_library/1/library");
}

TEST_CASE("a driver branch and a toolchain major version have one row of a question") {
  Table table = example_table();
  TableRecord other = table.records[0];
  other.context.driver = "580.82";
  other.context.toolchain.name = "nvrtc 13.1";
  table.records.push_back(other);
  CHECK_THROWS_WITH(read_table(print_table(table), "t.json"), Catch::Contains("twice"));
  table.records[1].context.driver = "590.10";
  CHECK(read_table(print_table(table), "t.json").records.size() == 2);
  table.records[1] = other;
  table.records[1].context.toolchain.name = "nvrtc 12.8";
  CHECK(read_table(print_table(table), "t.json").records.size() == 2);
}

TEST_CASE("a record of another interface of the kernel is another row") {
  Table table = example_table();
  table.records.push_back(table.records[0]);
  table.records[1].interface = Digest::of("another");
  CHECK(read_table(print_table(table), "t.json").records.size() == 2);
  std::ranges::reverse(table.records);
  CHECK(print_table(table) == print_table(read_table(print_table(table), "t.json")));
}

TEST_CASE("two kernels with the same code share a trial key") {
  Table table = example_table();
  table.trials.push_back(table.trials[0]);
  CHECK_THROWS_WITH(read_table(print_table(table), "t.json"),
                    Catch::Contains("/trials/2: the table has this"));
  table.trials[2].context.kernel = "renamed";
  CHECK(read_table(print_table(table), "t.json").trials.size() == 3);
}

TEST_CASE("a member that no table has is refused in each element") {
  const OrderedJson valid = parse_json_strict(print_table(compared_table()), "t.json");
  const std::vector<std::string> members = {"/x",
                                            "/devices/0/x",
                                            "/devices/0/facts/x",
                                            "/devices/0/facts/cc_major",
                                            "/records/0/x",
                                            "/records/0/problem/x",
                                            "/records/0/toolchain/x",
                                            "/records/0/verification/x",
                                            "/records/0/over_library/0/x",
                                            "/trials/0/x",
                                            "/trials/0/fault_count",
                                            "/trials/0/resources/0/x",
                                            "/trials/0/screening/0/x",
                                            "/trials/0/verifications/0/x"};
  for (const std::string& member : members) {
    OrderedJson json = valid;
    json[OrderedJson::json_pointer(member)] = 1;
    CHECK_THROWS_WITH(read_table(json.dump(), "t.json"),
                      Catch::StartsWith("t.json " + member + ": unexpected key"));
  }
}

TEST_CASE("every malformed table is refused at its place with its cause") {
  const TempDir folder;
  for (const test::MalformedFile& file : test::write_malformed("tables", folder.path())) {
    CHECK_THROWS_WITH(read_table(read_file(file.path), file.path), Catch::StartsWith(file.path) &&
                                                                       Catch::Contains(file.where) &&
                                                                       Catch::Contains(file.cause));
  }
}

TEST_CASE("a table above the limit is refused before it is parsed") {
  const std::string text(kMaxTableBytes + 1, ' ');
  CHECK_THROWS_WITH(read_table(text, "t.json"), Catch::Contains(std::to_string(kMaxTableBytes)));
}

TEST_CASE("a violation far down a list is reported at its own index") {
  Table table = example_table();
  for (std::int64_t size = 1; size < 700; ++size) {
    table.records.push_back(table.records[0]);
    table.records.back().context.problem.dims[0].value = 4096 + size;
  }
  std::string text = print_table(table);
  const std::size_t last = text.rfind("\"samples\":");
  const std::size_t in_records = text.rfind("\"samples\":5", text.find("\"trials\""));
  REQUIRE(in_records <= last);
  text.replace(in_records, 11, "\"samples\":0");
  CHECK_THROWS_WITH(read_table(text, "t.json"), Catch::StartsWith("t.json /records/699/samples"));
}

TEST_CASE("reading a table asks whether it is to go on") {
  int asked = 0;
  const auto stop = [&] {
    if (++asked == 3) {
      throw Error(ErrorCode::Cancelled, "call", "the caller withdrew");
    }
  };
  CHECK_THROWS_WITH(read_table(print_table(example_table()), "t.json", stop), Catch::Contains("withdrew"));
}

}  // namespace
}  // namespace cubind
