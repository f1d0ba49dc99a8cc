// What kernels include of the standard libraries and of CUDA's host side, compiled by each NVRTC here.
#include "tuner/includes/stand_ins.hpp"

#include <catch2/catch.hpp>

#include "tests/nvrtc/compile_worker/any_toolchain.hpp"
#include "tests/nvrtc/compile_worker/worker_process.hpp"

using Catch::Matchers::Contains;

namespace cubind::test {
namespace {

v1::CompileReply compiled(WorkerProcess& worker, const Toolchain& toolchain, const std::string& source,
                          const std::vector<std::string>& options = {}) {
  auto request = compile_request_with_headers(source, {"k"}, toolchain);
  for (const std::string& option : options) {
    request.add_options(option);
  }
  return worker.compile(request);
}

void check_compiles(WorkerProcess& worker, const Toolchain& toolchain, const std::string& source,
                    const std::vector<std::string>& options = {}) {
  const v1::CompileReply reply = compiled(worker, toolchain, source, options);
  INFO(toolchain.name() << "\n" << source << "\n" << reply.log());
  CHECK(reply.outcome() == v1::CORRECT);
  CHECK(reply.log().empty());
}

bool needs_cccl(const std::string& name) { return name == "cub/cub.cuh"; }

// Others are a comment.
bool has_text(const std::string& name) {
  return find_stand_in(name)->file->content.find('#') != std::string::npos;
}

std::string include_of(const std::string& name) { return "#include <" + name + ">\n"; }

std::string all_stand_ins() {
  std::string text;
  for (const std::string& name : stand_in_names()) {
    text += needs_cccl(name) ? "" : include_of(name);
  }
  return text;
}

constexpr char kNoUse[] = "__global__ void k(float* x) { *x = 1; }\n";

}  // namespace

TEST_CASE("each stand-in compiles alone and all of them together") {
  const Toolchain& toolchain = any_toolchain();
  WorkerProcess worker(toolchain);
  for (const std::string& name : stand_in_names()) {
    if (has_text(name) && !needs_cccl(name)) {
      check_compiles(worker, toolchain, include_of(name) + kNoUse);
    }
  }
  for (const char* option :
       {"--std=c++17", "--std=c++20", "--minimal", "--device-as-default-execution-space"}) {
    check_compiles(worker, toolchain, all_stand_ins() + kNoUse, {option});
  }
}

TEST_CASE("every stand-in compiles before and after headers of CCCL") {
  const Toolchain& toolchain = any_toolchain();
  REQUIRE(toolchain.read_header("cuda/std/limits"));
  WorkerProcess worker(toolchain);
  std::string cccl;
  for (const char* name :
       {"cstdint", "climits", "cmath", "limits", "tuple", "array", "utility", "cstring", "cstddef"}) {
    const std::string header = "cuda/std/" + std::string(name);
    cccl += toolchain.read_header(header) ? include_of(header) : "";
  }
  cccl += include_of("cuda_fp16.h") + include_of("cuda_bf16.h");
  for (const char* option : {"--std=c++17", "--std=c++20"}) {
    check_compiles(worker, toolchain, all_stand_ins() + cccl + kNoUse, {option});
    check_compiles(worker, toolchain, cccl + all_stand_ins() + kNoUse, {option});
  }
}

TEST_CASE("numbers and limits are those of the C++ standard library") {
  const Toolchain& toolchain = any_toolchain();
  WorkerProcess worker(toolchain);
  check_compiles(worker, toolchain, R"(
    #include <climits>
    #include <cfloat>
    #include <cmath>
    #include <cstdint>
    #include <limits>
    static_assert(sizeof(std::int64_t) == 8 && sizeof(uint8_t) == 1 && INT64_MAX == LLONG_MAX && UINT_MAX == 4294967295u);
    static_assert(std::numeric_limits<float>::max() == FLT_MAX && std::numeric_limits<float>::lowest() == -FLT_MAX);
    static_assert(std::numeric_limits<int>::min() == INT_MIN && std::numeric_limits<unsigned char>::max() == 255);
    static_assert(std::numeric_limits<double>::infinity() > DBL_MAX && INFINITY > FLT_MAX && NAN != NAN);
    static_assert(std::numeric_limits<long long>::digits == 63 && !std::numeric_limits<unsigned>::is_signed);
    __global__ void k(float* x, double* y) {
      *x = std::sqrt(*x) + std::pow(*x, 2.0f) + std::abs(-*x) + std::fmaxf(*x, 1.0f) + fabsf(*x) + M_PI;
      *y = std::isnan(*y) || isinf(*x) ? std::floor(*y) : std::numeric_limits<double>::quiet_NaN();
    })");
}

TEST_CASE("algorithms and containers of device code work") {
  const Toolchain& toolchain = any_toolchain();
  WorkerProcess worker(toolchain);
  check_compiles(worker, toolchain, R"(
    #include <algorithm>
    #include <array>
    #include <functional>
    #include <numeric>
    #include <tuple>
    #include <utility>
    static_assert(std::max(1, 2) == 2 && std::min({3, 1, 2}) == 1 && std::clamp(5, 0, 3) == 3);
    static_assert(std::make_index_sequence<3>::size() == 3 && std::plus<>()(1, 2) == 3 && std::less<int>()(1, 2));
    static_assert(std::tuple_size_v<std::tuple<int, float>> == 2 && std::array<int, 3>{1, 2, 3}[2] == 3);
    __global__ void k(float* x, int* p) {
      std::array<float, 4> a = {1, 2, 3, 4};
      std::swap(x[0], a[1]);
      auto [first, second] = std::make_pair(1, 2.0f);
      std::tuple<int, float> both = std::make_tuple(3, 4.0f);
      int n;
      float f;
      std::tie(n, f) = both;
      const auto [one, two] = both;
      const auto [x0, y0] = make_float2(x[0], x[1]);  // <utility>'s tuple_size is for tuples alone
      x[2] = x0 + y0;
      p[0] = first + n + one + std::exchange(p[1], 7) + std::get<0>(both) + *std::lower_bound(p, p + 4, 2);
      x[1] = second + f + two + std::accumulate(a.begin(), a.end(), 0.0f) + std::get<1>(a) + std::max(x[2], 0.0f);
    })");
}

TEST_CASE("type traits answer as those of the C++ standard library") {
  const Toolchain& toolchain = any_toolchain();
  WorkerProcess worker(toolchain);
  check_compiles(worker, toolchain, R"(
    #include <type_traits>
    using namespace std;
    enum class E : unsigned char { One };
    struct Base {}; struct Derived : Base {};
    static_assert(is_same_v<decay_t<const int&>, int> && is_same_v<decay_t<int[3]>, int*> && is_same_v<decay_t<void(int)>, void (*)(int)>);
    static_assert(is_integral_v<const long long> && !is_integral_v<float> && is_floating_point_v<double> && is_signed_v<int>);
    static_assert(is_pointer_v<int* const> && !is_pointer_v<int> && is_function_v<void(int)> && !is_function_v<int&>);
    static_assert(is_enum_v<E> && is_same_v<underlying_type_t<E>, unsigned char> && is_base_of_v<Base, Derived>);
    static_assert(is_convertible_v<int, float> && is_trivially_copyable_v<Base> && is_same_v<common_type_t<int, float>, float>);
    static_assert(is_same_v<make_unsigned_t<long>, unsigned long> && conjunction_v<true_type, negation<false_type>>);
    static_assert(is_same_v<remove_pointer_t<int*>, int> && is_same_v<add_lvalue_reference_t<void>, void> && extent_v<int[2][3], 1> == 3);
    template <class T> __device__ enable_if_t<is_same<T, float>::value, T> half(T x) { return x / 2; }
    template <class T> __device__ enable_if_t<!is_same<T, float>::value, T> half(T x) { return x >> 1; }
    __global__ void k(float* x, int* p) { *x = half(*x); *p = half(*p); })");
}

TEST_CASE("the C library's names and what nvcc brings with cuda_runtime.h are there") {
  const Toolchain& toolchain = any_toolchain();
  WorkerProcess worker(toolchain);
  check_compiles(worker, toolchain, R"(
    #include <cassert>
    #include <cstddef>
    #include <cstdio>
    #include <cstring>
    #include <cuda.h>
    #include <cuda_runtime.h>
    #include <iostream>
    #include <vector>
    using namespace std;
    static_assert(sizeof(CUtensorMap) == 128 && alignof(CUtensorMap) == 64 && offsetof(float2, y) == 4 && CUDA_VERSION >= 12000);
    __global__ void k(float4* x, uint* p, uint32_t n, const __grid_constant__ CUtensorMap map) {
      assert(n > 0);
      if (threadIdx.x == 0) { printf("%u %f\n", n, -INFINITY); }
      std::memcpy(p, x, sizeof(float4));
      memmove(p + 1, p, 8);
      p[3] = max(p[0], p[1]) + min(n, 3u) + static_cast<uint>(strlen("four")) + memcmp(p, x, 4);
      x[0] = make_float4(x[0].x, __ldg(&x[1].y), std::exp(x[0].z), 0.0f);
      p[4] = reinterpret_cast<const unsigned*>(&map)[0];
    })");
}

TEST_CASE("NDEBUG removes assertions") {
  const Toolchain& toolchain = any_toolchain();
  WorkerProcess worker(toolchain);
  const std::string text = "#include <cassert>\n__global__ void k(float* x) { assert(*x > 0); }";
  const std::string with = compiled(worker, toolchain, text).cubin();
  const std::string without = compiled(worker, toolchain, "#define NDEBUG\n" + text).cubin();
  CHECK_THAT(with, Contains("__assertfail"));
  CHECK_THAT(without, !Contains("__assertfail"));
}

TEST_CASE("math.h declares in std too and a prototype may name FILE and pthread_t") {
  WorkerProcess worker(any_toolchain());
  check_compiles(worker, any_toolchain(),
                 "#include <math.h>\n#include <stdio.h>\n#include <pthread.h>\n"
                 "__device__ void save(FILE* to, pthread_t by);\n"
                 "__global__ void k(float* x) { *x = std::sqrt(*x); }\n");
}

TEST_CASE(
    "a macro of the spec that the source defines otherwise is an error and one of the same value is not") {
  WorkerProcess worker(any_toolchain());
  auto request = compile_request_with_headers("#define W 4\n__global__ void k(int* x) { *x = W; }\n", {"k"},
                                              any_toolchain());
  request.add_defines("W=2");
  const v1::CompileReply other = worker.compile(request);
  CHECK(other.outcome() == v1::COMPILE);
  CHECK_THAT(other.log(), Contains("defines the macro \"W\" itself") && Contains("#ifndef"));
  request.set_defines(0, "W=4");
  CHECK(worker.compile(request).outcome() == v1::CORRECT);
}

}  // namespace cubind::test
