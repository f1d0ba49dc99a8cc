#include "tests/gpu/device_worker/other_process.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>

#include "tuner/worker/driver_context.hpp"

namespace cubind::test {

// The other process: this program runs it alone.
TEST_CASE("a gigabyte of the GPU is taken until the process is killed", "[.other process]") {
  worker::DriverContext context("");
  context.activate();
  constexpr std::size_t kBytes = std::size_t{1} << 30;
  cuda::DevicePtr memory = 0;
  REQUIRE(context.api().mem_alloc(&memory, kBytes) == cuda::Result::Success);
  REQUIRE(::write(STDOUT_FILENO, "held", 4) == 4);
  while (true) {
    REQUIRE(context.api().memset_d8_async(memory, 1, kBytes, context.stream()) == cuda::Result::Success);
    context.synchronize("memset");
  }
}

std::vector<std::string> environment_without(std::string_view name) {
  std::vector<std::string> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!std::string_view(*variable).starts_with(name)) {
      environment.emplace_back(*variable);
    }
  }
  return environment;
}

Subprocess hold_a_gigabyte() {
  SubprocessOptions other;
  other.program = "/proc/self/exe";
  other.arguments = {"a gigabyte of the GPU is taken until the process is killed"};
  other.environment = environment_without("-");
  other.stdout_to = ChildStream::Pipe;
  Subprocess process = Subprocess::spawn(other);
  std::string said;
  for (char next = 0; said.find("held") == std::string::npos; said += next) {
    INFO(said);
    REQUIRE(::read(process.stdout_pipe().get(), &next, 1) == 1);
  }
  return process;
}

}  // namespace cubind::test
