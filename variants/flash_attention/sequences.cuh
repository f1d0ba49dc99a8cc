// Packed sequences: sequence n has the rows from bounds[n] on, up to bounds[n + 1], or `lengths[n]` of them, if there
// are lengths. bounds[N] is the number of rows. Rows that are in no sequence are a gap behind the sequence before them;
// those before the first one are the gap of a sequence -1 without rows.
#pragma once

struct Sequence {
  int number, begin;  // its first row
  int rows, owned;    // how many, and with the gap behind them
  int tile;           // of the block, within the sequence
};

template <bool GAPS>
struct Sequences {
  const int *bounds, *lengths;
  int count;

  __device__ __forceinline__ Sequence get(int number) const {
    if (GAPS && number < 0) {
      return {number, 0, 0, __ldg(bounds), 0};
    }
    const int begin = __ldg(bounds + number), owned = __ldg(bounds + number + 1) - begin;
    int rows = owned;
    if constexpr (GAPS) {
      const int length = __ldg(lengths + number);
      rows = length < owned ? length : owned;
    }
    return {number, begin, rows, owned, 0};
  }

  // The sequence of the block's tile, of count + rows / TILE (and one more with gaps): a sequence's first tile has the
  // number bounds[n] / TILE + n, so that each has at least as many as it needs. Every warp looks for it by itself, 32
  // sequences at a time. The tile may lie behind the sequence.
  template <int TILE>
  __device__ __forceinline__ Sequence of_tile(int tile) const {
    int low = GAPS ? -1 : 0, high = count;  // first_tile(low) <= tile < first_tile(high)
    while (high - low > 1) {
      const int step = (high - low + 31) / 32, probe = low + (int(threadIdx.x) % 32 + 1) * step;
      const bool reached = probe < high && first_tile<TILE>(probe) <= tile;
      low += __popc(__ballot_sync(0xffffffffu, reached)) * step;
      high = high < low + step ? high : low + step;
    }
    Sequence found = get(low);
    found.tile = tile - first_tile<TILE>(low);
    return found;
  }

  // How many tiles a grid has.
  template <int TILE>
  static __device__ __forceinline__ int tiles(int rows, int count) {
    return rows / TILE + count + (GAPS ? 1 : 0);
  }

 private:
  template <int TILE>
  __device__ __forceinline__ int first_tile(int number) const {
    if (number < 0) {
      return 0;
    }
    return __ldg(bounds + number) / TILE + number + (GAPS ? 1 : 0);
  }
};
