// What the fake libcupti does and is given; shared by it and its test.
#pragma once

#include <cstddef>

namespace cubind::worker {

struct FakeCupti {
  std::size_t flushes = 0, forced = 0, delivered = 0;
  std::size_t unclean = 0;   // buffers that were not all zeros
  bool gives_zeros = false;  // what the attribute was set to
};

}  // namespace cubind::worker
