// What TmaEngine::run makes of sums that are finished: stores them as they are.
#pragma once

struct AsItIs {
  __device__ __forceinline__ void operator()(float (&)[4], int, int) const {}
};
