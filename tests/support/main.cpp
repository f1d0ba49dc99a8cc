#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>

#include <csignal>
#include <cstdlib>

#include "tests/support/paths.hpp"

int main(int argc, char* argv[]) {
  if (const auto home = cubind::test::cuda_home()) {
    setenv("CUBIND_CUDA_HOME", home->c_str(), 0);
  }
  // A test that lets a peer vanish writes into a closed socket.
  std::signal(SIGPIPE, SIG_IGN);
  return Catch::Session().run(argc, argv);
}
