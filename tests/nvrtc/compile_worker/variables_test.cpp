// What kernels read that cubind does not pass: compiled with each NVRTC of the machine.
#include <catch2/catch.hpp>

#include "tests/nvrtc/compile_worker/any_toolchain.hpp"
#include "tests/nvrtc/compile_worker/worker_process.hpp"
#include "tests/nvrtc/toolchains/toolchains.hpp"
#include "tests/support/gpu_kernels.hpp"
#include "tuner/spec/cubin_entries.hpp"

using Catch::Matchers::Contains;

namespace cubind::test {
namespace {

/// A kernel k(float* y, int n) with this body after these declarations.
std::string kernel(const std::string& declarations, const std::string& body) {
  return declarations + "\n__global__ void k(float* y, int n) { " + body + " }\n";
}

v1::CompileReply compiled(WorkerProcess& worker, const std::string& source,
                          std::vector<std::string> entries = {"k"}) {
  v1::CompileReply reply = worker.compile(compile_request(source, std::move(entries)));
  INFO(source << "\n" << reply.log());
  CHECK((reply.outcome() == v1::CORRECT || reply.outcome() == v1::COMPILE));
  return reply;
}

}  // namespace

TEST_CASE("a variable that the kernel reads and nothing sets is refused by its name") {
  WorkerProcess worker(any_toolchain());
  for (const auto& [declarations, body, name] : std::vector<std::array<std::string, 3>>{
           {"__constant__ float d_filter[9];", "y[n] = d_filter[n];", "__constant__ variable d_filter"},
           {"__constant__ float d_filter[9] = {0};", "y[n] = d_filter[n];", "variable d_filter"},
           {"static __constant__ float s[9];", "y[n] = s[n];", "__constant__ variable s"},
           {"extern __constant__ float e[9];", "y[n] = e[n];", "__constant__ variable e"},
           {"namespace { __constant__ float hidden[9]; }", "y[n] = hidden[n];", "variable hidden"},
           {"namespace ns { __device__ float inner[9]; }", "y[n] = ns::inner[n];", "variable ns::inner"},
           {"template <typename T> __constant__ T filter[9];", "y[n] = filter<float>[n];",
            "variable filter<float>"},
           {"inline __device__ float inl;", "y[n] = inl;", "__device__ variable inl"},
           {"struct P { float a; int b[3]; }; __constant__ P par;", "y[n] = par.b[n];",
            "__constant__ variable par"},
           {"__device__ unsigned counter;", "atomicInc(&counter, n);", "__device__ variable counter"},
           {"__device__ volatile int flag;", "while (flag == n) {}", "__device__ variable flag"},
           {"__device__ float far[9]; __device__ __noinline__ float get(int i) { return far[i]; }",
            "y[n] = get(n);", "__device__ variable far"},
           {"__device__ float target[9]; __device__ float* pointer = target;", "y[n] = pointer[n];",
            "__device__ variable target"},
           {"__managed__ int managed;", "y[n] = managed;", "__device__ variable managed"}}) {
    INFO(declarations);
    const v1::CompileReply reply = compiled(worker, kernel(declarations, body));
    CHECK(reply.outcome() == v1::COMPILE);
    CHECK_THAT(reply.log(), Contains("the entry \"k\": the ") &&
                                Contains(name + " is read and nothing sets it") &&
                                Contains("\"symbol\": \"" + name.substr(name.rfind(' ') + 1) + "\""));
  }
}

TEST_CASE("the kernels that the tests run on a GPU are compiled") {
  WorkerProcess worker(any_toolchain());
  const std::string source = gpu_kernels();
  const v1::CompileReply reply = compiled(worker, source, kernel_names(source));
  CHECK(reply.outcome() == v1::CORRECT);
}

TEST_CASE("what has its content from the source or the kernel itself is no unset variable") {
  WorkerProcess worker(any_toolchain());
  for (const auto& [declarations, body] : std::vector<std::array<std::string, 2>>{
           {"__constant__ float table[3] = {1, 2, 3};", "y[n] = table[n];"},
           {"__device__ unsigned counter = 0;", "if (atomicInc(&counter, n) == 3) counter = 0;"},
           {"__device__ int zeros[4] = {};", "y[n] = zeros[n];"},
           {"const __device__ float zeros[4] = {0, 0, 0, 0};", "y[n] = zeros[n];"},
           {"static const float zeros[4] = {0, 0, 0, 0};", "y[n] = zeros[n];"},
           {"constexpr float zeros[4] = {};", "y[n] = zeros[n];"},
           {"", "static __device__ unsigned calls; y[n] = atomicAdd(&calls, 1);"},
           {"", "const float zeros[4] = {0}; y[n] = zeros[n];"},
           {"__device__ int status;", "status = n;"},
           {"__constant__ float unused[9]; __device__ float other[9];", "y[n] = 1;"},
           {"", "printf(\"%d\", n); printf(\"\"); y[n] = sinf(y[n]) + tgammaf(y[0]);"},
           {"__device__ unsigned unused[4];", "if (n == 3) printf(\"%d\", n); y[n] = 1;"},
           {"__device__ float f(float x) { return x; } __device__ float (*calls[1])(float) = {f};",
            "y[n] = calls[n](y[0]);"},
           {"struct A { __device__ virtual float f() { return 1; } }; struct B : A { __device__ float f() "
            "override { return 2; } };",
            "A a; B b; A* p = n ? &a : &b; y[n] = p->f();"},
           {"__constant__ float only_other[9]; __global__ void other(float* y) { *y = only_other[3]; }",
            "y[n] = 1;"}}) {
    INFO(declarations << " " << body);
    const v1::CompileReply reply = compiled(worker, kernel(declarations, body));
    INFO(reply.log());
    CHECK(reply.outcome() == v1::CORRECT);
  }
}

TEST_CASE("a variable that is compiled by name has a symbol whose size the cubin tells") {
  WorkerProcess worker(any_toolchain());
  const std::string source = kernel(
      "template <typename T> __constant__ T filter[9]; namespace { __constant__ int hidden[3]; } static "
      "__device__ "
      "unsigned counter;",
      "y[n] = filter<float>[n] + hidden[n]; atomicInc(&counter, n);");
  const v1::CompileReply reply =
      compiled(worker, source, {"k", "&counter", "&filter<float>", "&hidden", "&filter<double>"});
  INFO(reply.log());
  REQUIRE(reply.outcome() == v1::CORRECT);
  REQUIRE(reply.entry_symbols_size() == 5);
  CHECK(reply.resources_size() == 1);
  const CubinVariables variables = read_cubin_variables(reply.cubin());
  CHECK(variables.at(reply.entry_symbols(1)) == 4);
  CHECK(variables.at(reply.entry_symbols(2)) == 36);
  CHECK(variables.at(reply.entry_symbols(3)) == 12);
  CHECK(variables.at(reply.entry_symbols(4)) == 72);
  CHECK(changeable_variables(reply.cubin()) == std::vector<std::string>{reply.entry_symbols(1)});
}

TEST_CASE("a kernel that prints calls the driver and one that only has the name of its function does not") {
  WorkerProcess worker(any_toolchain());
  const auto prints = [&](const std::string& declarations, const std::string& body) {
    const v1::CompileReply reply = compiled(worker, kernel(declarations, body));
    REQUIRE(reply.outcome() == v1::CORRECT);
    return calls_driver(reply.cubin(), "vprintf");
  };
  CHECK(prints("", "printf(\"%d\", n);"));
  CHECK_FALSE(prints("__device__ const char text[] = \"vprintf\";", "y[n] = text[n];"));
  CHECK_FALSE(prints("__device__ __noinline__ float my_vprintf(float x) { return x * x; }",
                     "y[n] = my_vprintf(y[n]);"));
}

TEST_CASE("a name that is no variable is refused") {
  WorkerProcess worker(any_toolchain());
  const std::string source = kernel("__constant__ float d_filter[9];", "y[n] = d_filter[n];");
  CHECK_THAT(compiled(worker, source, {"k", "&filter"}).log(), Contains("filter"));
  CHECK_THAT(compiled(worker, source, {"k", "&k"}).log(),
             Contains("\"k\" is not a __constant__ or __device__ variable"));
}

TEST_CASE("textures and surfaces are refused by their instruction") {
  WorkerProcess worker(any_toolchain());
  const auto uses = [&](const std::string& parameters, const std::string& body) {
    return compiled(worker, "__global__ void k(float* y, " + parameters + ") { " + body + " }").log();
  };
  CHECK_THAT(uses("cudaTextureObject_t t", "y[0] = tex1Dfetch<float>(t, 3);"),
             Contains("the entry \"k\" uses a texture or surface (tex.1d."));
  CHECK_THAT(uses("cudaSurfaceObject_t s", "surf2Dwrite(1.0f, s, 4, 2);"),
             Contains("uses a texture or surface (sust."));
  CHECK(uses("const float* __restrict__ x", "y[0] = __ldg(x) + x[3];").empty());
}

}  // namespace cubind::test
