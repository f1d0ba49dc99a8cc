#include "tuner/worker/profiled_launch.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/subprocess.hpp"
#include "plan/wire.hpp"
#include "tests/support/paths.hpp"
#include "tests/unit/device_worker/host_driver.hpp"
#include "tuner/worker/modes.hpp"

namespace cubind::worker {
namespace {

// y = f(x) by the kernel two_pointers.
v1::LaunchFile launch_file() {
  constexpr std::uint64_t kElements = 4096;
  v1::LaunchFile file;
  file.mutable_problem()->set_kernel("two_pointers");
  file.mutable_problem()->set_reference("expected");
  for (const char* name : {"x", "y"}) {
    v1::BufferSpec& buffer = *file.mutable_problem()->add_buffers();
    buffer.set_name(name);
    buffer.set_type("u8");
    buffer.set_role(name == std::string("x") ? v1::IN : v1::OUT);
    buffer.set_elements(kElements);
    buffer.set_align_bytes(16);
    buffer.mutable_fill()->set_kind("uniform");
    buffer.mutable_fill()->add_parameters(0);
    buffer.mutable_fill()->add_parameters(9);
  }
  Launch launch{"two_pointers", "two_pointers", {}, {}, 0, {}};
  launch.parameters = {{"x", ParameterSource::Buffer, DType::U8, Role::In, kElements, 16, 0},
                       {"y", ParameterSource::Buffer, DType::U8, Role::Out, kElements, 16, 0}};
  to_wire(LaunchPlan{{launch}}, *file.mutable_plan());
  file.set_cubin("cubin");
  return file;
}

TEST_CASE("a profiler sees the launches of the plan once and nothing else") {
  DriverContext context("", test::make_host_driver());
  launch_profiled(context, launch_file());
  CHECK(test::launched().at("two_pointers") > 1);
  CHECK(test::launched_while_profiled() == std::map<std::string, int>{{"two_pointers", 1}});
  CHECK(test::launched().at("cubind_fill") == 1);
}

TEST_CASE("a plan whose buffers differ from the problem is refused before a profiler begins") {
  v1::LaunchFile file = launch_file();
  file.mutable_problem()->mutable_buffers(1)->set_elements(1);
  DriverContext context("", test::make_host_driver());
  CHECK_THROWS_WITH(launch_profiled(context, file), Catch::Contains("the plan wants 4096 bytes"));
  CHECK(test::launched_while_profiled().empty());
}

TEST_CASE("a file that is no launch is named by the launcher") {
  const TempDir folder;
  const auto path = folder.path() / "some.launch";
  write_file_atomic(path, "no message");
  SubprocessOptions options;
  options.program = test::bin_dir() / "cubind-worker";
  options.arguments = {"launch", path};
  options.stderr_to = ChildStream::Null;
  CHECK(Subprocess::spawn(options).wait().code == static_cast<int>(ExitCode::Usage));
  CHECK_THROWS_WITH(run_launch(path), Catch::Contains("is not a file that `cubindctl profile` writes"));
  CHECK_THROWS_AS(run_launch(folder.path() / "none"), Error);
}

}  // namespace
}  // namespace cubind::worker
