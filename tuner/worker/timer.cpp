#include "tuner/worker/timer.hpp"

namespace cubind::worker {

std::vector<std::vector<double>> Timer::measure_each(std::span<const TimedWork> works, unsigned samples) {
  std::vector<std::vector<double>> results;
  for (const TimedWork& work : works) {
    results.push_back(measure(work, samples));
  }
  return results;
}

}  // namespace cubind::worker
