// Boxes of tensors, copied by TMA (sm_90) between global memory and shared memory.
//
// A box's first element is named by its coordinates, innermost first. What lies outside of the tensor is loaded as
// zeros and not stored. In shared memory a box begins at a multiple of 1024 bytes where its map is swizzled by 128
// bytes; it then lies as a panel of a SwizzledTile does.
#pragma once

// CUtensorMap, without the toolkit's cuda.h. Kernels take it as const __grid_constant__.
struct alignas(64) TensorMap {
  unsigned long long words[16];
};

// Makes the barriers that this thread initialized seen by TMA and by the blocks of the cluster; a barrier of the block
// or of the cluster follows.
__device__ __forceinline__ void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Arrives at a barrier whose phase also waits for this many bytes of boxes.
__device__ __forceinline__ void expect_bytes(unsigned int barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

// Starts the copy of a box to shared memory, whose bytes `barrier` counts. BLOCKS > 1: to the first BLOCKS blocks of
// the cluster, at the same address in each, where each one's barrier counts them.
template <int BLOCKS>
__device__ __forceinline__ void load_box(unsigned int to, const TensorMap& map, int column, int row,
                                         unsigned int barrier) {
  if constexpr (BLOCKS > 1) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], "
        "[%1, {%3, %4}], [%2], %5;" ::"r"(to),
        "l"(&map), "r"(barrier), "r"(column), "r"(row), "h"(static_cast<unsigned short>((1 << BLOCKS) - 1))
        : "memory");
  } else {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], "
        "[%2];" ::"r"(to),
        "l"(&map), "r"(barrier), "r"(column), "r"(row)
        : "memory");
  }
}

// The same of a box of four axes.
__device__ __forceinline__ void load_box(unsigned int to, const TensorMap& map, int column, int row, int head,
                                         int batch, unsigned int barrier) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%3, %4, %5, %6}], [%2];" ::"r"(to),
      "l"(&map), "r"(barrier), "r"(column), "r"(row), "r"(head), "r"(batch)
      : "memory");
}

// Starts the copy of a box from shared memory, as a group of its own. What was written there needs a
// fence.proxy.async (publish_to_wgmma) by those who wrote it, and a barrier.
__device__ __forceinline__ void store_box(const TensorMap& map, unsigned int from, int column, int row) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&map),
               "r"(from), "r"(column), "r"(row)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Waits until all but the newest LEFT of this thread's stores have read shared memory.
template <int LEFT>
__device__ __forceinline__ void wait_for_store_reads() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(LEFT) : "memory");
}

// Waits until all of this thread's stores are done.
__device__ __forceinline__ void wait_for_stores() {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// Four 8 x 8 tiles of 16-bit elements to shared memory, as load_tiles() of mma.cuh reads them.
__device__ __forceinline__ void store_tiles(unsigned int row, const unsigned int (&from)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(from[0]),
               "r"(from[1]), "r"(from[2]), "r"(from[3])
               : "memory");
}
