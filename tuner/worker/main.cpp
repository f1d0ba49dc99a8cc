#include <cstring>
#include <ctime>

#include "tuner/worker/modes.hpp"

/// NVRTC takes __DATE__ and __TIME__ from ctime(), and the artifact key holds no date: every compile has the
/// same one. The program exports this function, so that a library that is opened later finds it before the
/// system's.
extern "C" char* ctime(const time_t* /*time*/) noexcept {
  // Aligned: mold begins the part that is made read-only with it. Unaligned, that part can begin on a page
  // that is not mapped, and the loader refuses the program.
  alignas(64) static thread_local char text[32];
  std::strcpy(text, "Thu Jan  1 00:00:00 1970\n");  // an earlier caller may have written to it
  return text;
}

int main(int argc, char** argv) {
  return cubind::worker::worker_main(argc, argv, cubind::worker::make_replay_device);
}
