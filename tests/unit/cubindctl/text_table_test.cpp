#include "client/cubindctl/text_table.hpp"

#include <catch2/catch.hpp>
#include <sstream>

namespace cubind::ctl {

TEST_CASE("columns are aligned and the last one is not padded") {
  TextTable table({"KERNEL", ">RECORDS", "TYPES"});
  table.add({"rmsnorm_forward", "9", "T=bf16"});
  table.add({"add", "12", "T=f32|f16"});
  std::ostringstream out;
  table.print(out);
  CHECK(out.str() ==
        "KERNEL           RECORDS  TYPES\n"
        "rmsnorm_forward        9  T=bf16\n"
        "add                   12  T=f32|f16\n");
}

TEST_CASE("sizes are printed in binary units") {
  CHECK(size_text(512) == "512 B");
  CHECK(size_text(10752) == "10.5 KiB");
  CHECK(size_text(std::uint64_t{141} << 30) == "141.0 GiB");
}

}  // namespace cubind::ctl
