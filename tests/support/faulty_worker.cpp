// cubind-worker with a replay device that fails as CUBIND_REPLAY_FAULTS says. An agent runs it if
// CUBIND_WORKER names it.
#include "tests/support/faulty_device.hpp"
#include "tuner/worker/modes.hpp"

int main(int argc, char** argv) {
  return cubind::worker::worker_main(argc, argv, [](const std::vector<std::string>& arguments) {
    return cubind::test::make_faulty_device(arguments);
  });
}
