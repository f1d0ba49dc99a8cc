// Thread block clusters (sm_90): blocks that run at the same time and read each other's shared memory.
#pragma once

// Blocks of a cluster, along the grid's x or y. Elsewhere no cluster has more than one block.
#if __CUDA_ARCH__ >= 900
#define CUBIND_CLUSTER_ALONG_X(BLOCKS) __cluster_dims__(BLOCKS, 1, 1)
#define CUBIND_CLUSTER_ALONG_Y(BLOCKS) __cluster_dims__(1, BLOCKS, 1)
#else
#define CUBIND_CLUSTER_ALONG_X(BLOCKS)
#define CUBIND_CLUSTER_ALONG_Y(BLOCKS)
#endif

// All threads of all blocks meet; what they wrote to shared memory before is seen by all of them.
__device__ __forceinline__ void meet_cluster() {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "barrier.cluster.arrive.release.aligned;\n\t"
      "barrier.cluster.wait.acquire.aligned;" ::
          : "memory");
#endif
}

// Four floats that lie in the shared memory of block `rank` where `address` is in this block's.
__device__ __forceinline__ float4 load_of_block(unsigned int address, unsigned int rank) {
  float4 values = {};
#if __CUDA_ARCH__ >= 900
  unsigned int there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(values.x), "=f"(values.y), "=f"(values.z), "=f"(values.w)
               : "r"(there)
               : "memory");
#endif
  return values;
}

// This block's number in its cluster.
__device__ __forceinline__ unsigned int block_of_cluster() {
  unsigned int rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// Arrives at the barrier (warp_roles.cuh) that lies in the shared memory of block `rank` where `barrier` is in this
// block's. It does not order what this thread wrote: for that, .release.cluster waits for a membar.gpu.
__device__ __forceinline__ void arrive_at_block(unsigned int barrier, unsigned int rank) {
  asm volatile(
      "{.reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; "
      "mbarrier.arrive.shared::cluster.b64 _, [there];}" ::"r"(barrier),
      "r"(rank)
      : "memory");
}
