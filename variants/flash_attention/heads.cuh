// Where the rows of each head lie. With a stride of 0 they are a dense [B, heads, rows, D]. Otherwise the stride is the
// number of elements from one row to the next in [B, rows, heads, D], a multiple of 8: heads * D where nothing
// lies between them, and more in the output of one projection for queries, keys and values.
#pragma once

template <int D>
struct Heads {
  int heads, rows, stride;

  // Elements from one row of a head to the next.
  __device__ int pitch() const { return stride == 0 ? D : stride; }

  // Elements from one head of a batch to the next.
  __device__ long long step() const { return stride == 0 ? static_cast<long long>(rows) * D : D; }

  // The first element of a head, which is counted over all batches.
  __device__ long long begin(int head) const {
    const long long batch = static_cast<long long>(rows) * (stride == 0 ? heads * D : stride);
    return head / heads * batch + head % heads * step();
  }

  // The same order of rows and heads, with nothing between them.
  __device__ Heads dense() const { return {heads, rows, stride == 0 ? 0 : heads * D}; }
};
