// What the cubins here were compiled from, by nvcc 13.0:
//   for sm in 90 120; do nvcc -cubin -arch=sm_$sm -o entries.sm_$sm.cubin entries.cu; done
struct Large {
  float values[1500];
};

extern "C" __global__ void scalars(float* x, long long n, float s, bool b, float4 f, uint3 u) {
  x[n] = s * f.x + u.y + b;
}

extern "C" __global__ void nothing() {}

extern "C" __global__ void large(float* x, const __grid_constant__ Large l, char c, short s) {
  x[0] = l.values[threadIdx.x] + c + s;
}

extern "C" __global__ void __launch_bounds__(64) bounded(float* x) { x[threadIdx.x] = 1; }

extern "C" __global__ void __block_size__((32, 4, 1)) sized(float* x) { x[threadIdx.x] = 1; }

extern "C" __global__ void __cluster_dims__(2, 1, 1) clustered(float* x) { x[threadIdx.x] = 1; }

extern "C" __global__ void __cluster_dims__() launched_in_clusters(float* x) { x[threadIdx.x] = 1; }
