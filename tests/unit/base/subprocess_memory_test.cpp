#include <catch2/catch.hpp>

#include "base/file.hpp"
#include "base/subprocess.hpp"

namespace cubind {

TEST_CASE("an allocation above the address space limit fails in the child") {
  SubprocessOptions options;
  options.program = (executable_dir() / "subprocess_child").string();
  options.arguments = {"allocate"};
  CHECK(Subprocess::spawn(options).wait().code == 0);
  options.limit_address_space_bytes = 512u << 20;
  CHECK(Subprocess::spawn(options).wait().code == 3);
}

}  // namespace cubind
