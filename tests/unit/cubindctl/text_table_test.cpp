#include "client/cubindctl/terminal/text_table.hpp"

#include <catch2/catch.hpp>
#include <sstream>

namespace cubind::ctl {

TEST_CASE("columns are aligned and the last one is not padded") {
  TextTable table({"KERNEL", ">RECORDS", "TYPES"});
  table.add({"rmsnorm_forward", "9", "T=bf16"});
  table.add({"add", "12", "T=f32|f16"});
  std::ostringstream out;
  table.print(out, 0);
  CHECK(out.str() ==
        "KERNEL           RECORDS  TYPES\n"
        "rmsnorm_forward        9  T=bf16\n"
        "add                   12  T=f32|f16\n");
}

TEST_CASE("in a terminal that is a little too narrow the last column is broken under its head") {
  TextTable table({"JOB", ">DONE", "DETAIL"});
  table.add({"j1", "4/10", "the job failed: no configuration survived"});
  std::ostringstream out;
  table.print(out, 40, "> ");
  CHECK(out.str() ==
        "> JOB  DONE  DETAIL\n"
        "> j1   4/10  the job failed: no\n"
        ">            configuration survived\n");
}

TEST_CASE("in a terminal that is far too narrow each row is a block of lines") {
  TextTable table({"JOB", "KERNEL", "DETAIL"});
  table.add({"704557ea0b9abbd3", "rmsnorm_forward", "one two three"});
  table.add({"12e0f0efa2ef6c1f", "scale", "-"});
  std::ostringstream out;
  table.print(out, 30);
  CHECK(out.str() ==
        "JOB     704557ea0b9abbd3\n"
        "KERNEL  rmsnorm_forward\n"
        "DETAIL  one two three\n"
        "\n"
        "JOB     12e0f0efa2ef6c1f\n"
        "KERNEL  scale\n"
        "DETAIL  -\n");
  std::ostringstream narrower;
  table.print(narrower, 16);
  CHECK_THAT(narrower.str(), Catch::Contains("DETAIL  one two\n        three\n"));
}

TEST_CASE("a table that fits is the same at every width and an empty one has its head") {
  TextTable table({"A", "B"});
  std::ostringstream empty, wide, exact;
  table.print(empty, 1);
  CHECK(empty.str() == "A  B\n");
  table.add({"one", "two"});
  table.print(wide, 80);
  table.print(exact, 8);
  CHECK(wide.str() == exact.str());
}

TEST_CASE("sizes are printed in binary units") {
  CHECK(size_text(512) == "512 B");
  CHECK(size_text(10752) == "10.5 KiB");
  CHECK(size_text(std::uint64_t{141} << 30) == "141.0 GiB");
}

TEST_CASE("in a narrow terminal columns that can be spared are left out and named") {
  TextTable table({"JOB", "??KIND", ">?DONE", ">??SECONDS", "DETAIL"});
  table.add({"704557ea0b9abbd3", "tune", "4/10", "12.5", "no configuration survived"});
  const auto printed = [&](std::size_t columns) {
    std::ostringstream out;
    table.print(out, columns, "> ");
    return out.str();
  };
  CHECK(printed(0) == printed(100));
  CHECK(printed(54) ==
        "> JOB               KIND  DONE  DETAIL\n"
        "> 704557ea0b9abbd3  tune  4/10  no configuration\n"
        ">                               survived\n"
        "> (a wider terminal shows SECONDS)\n");
  CHECK(printed(36) ==
        "> JOB               DETAIL\n"
        "> 704557ea0b9abbd3  no configuration\n"
        ">                   survived\n"
        "> (a wider terminal shows KIND, DONE, SECONDS)\n");
}

TEST_CASE("where the last column has no room its cell stands beneath its row") {
  TextTable table({"JOB", "?KIND", "STATE", "DETAIL"});
  table.add({"704557ea0b9abbd3", "tune", "failed", "no configuration survived"});
  table.add({"12e0f0efa2ef6c1f", "tune", "running", "-"});
  std::ostringstream out;
  table.print(out, 32);
  CHECK(out.str() ==
        "JOB               KIND  STATE\n"
        "    DETAIL\n"
        "704557ea0b9abbd3  tune  failed\n"
        "    no configuration survived\n"
        "12e0f0efa2ef6c1f  tune  running\n");
}

}  // namespace cubind::ctl
