// The plain statement of the rotary embedding and of its gradient, one token a block of any size, in float64.
#include "vector_io.cuh"

template <typename T, int INVERSE, long long D>
__device__ void rotate_head(const T* x, const T* cosine, const T* sine, T* out, long long d) {
  const long long other = d < D / 2 ? d + D / 2 : d - D / 2;
  const double sign = (d < D / 2) != (INVERSE != 0) ? -1.0 : 1.0;
  out[d] = from_float<T>(float(to_float(x[d]) * double(to_float(cosine[d])) +
                               sign * to_float(x[other]) * double(to_float(sine[INVERSE ? other : d]))));
}

template <typename T, int INVERSE, long long D>
__global__ void rotary_reference(const T* q, const T* k, const T* cosines, const T* sines, T* q_out, T* k_out,
                                 int HQ, int HKV, long long C, long long N) {
  const long long token = blockIdx.x;
  if (token >= N) {
    return;
  }
  for (long long i = threadIdx.x; i < (HQ + HKV) * D; i += blockDim.x) {
    const long long head = i / D;
    const bool is_query = head < HQ;
    const long long at = (is_query ? token * HQ + head : token * HKV + (head - HQ)) * D;
    rotate_head<T, INVERSE, D>((is_query ? q : k) + at, cosines + token % C * D, sines + token % C * D,
                               (is_query ? q_out : k_out) + at, i % D);
  }
}
