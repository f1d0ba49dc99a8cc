#pragma once

namespace cubind {

/// What a model expects where nothing was tried.
struct Estimate {
  double mean = 0;
  double deviation = 0;
};

}  // namespace cubind
