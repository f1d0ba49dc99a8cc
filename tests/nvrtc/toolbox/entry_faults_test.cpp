// What a compiled entry takes and allows is compared with the spec, for cubins of each NVRTC that is here and
// architectures whose cubins differ.
#include "tuner/spec/entry_faults.hpp"

#include <catch2/catch.hpp>

#include "base/json.hpp"
#include "plan/wire.hpp"
#include "tests/nvrtc/toolchains/toolchains.hpp"
#include "tests/support/paths.hpp"
#include "tuner/agent/compile/compile_job.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;
using Faults = std::vector<EntryFault>;

constexpr DeviceConstants kH200{132, 232448, 62914560, 90};

constexpr const char* kSpec = R"json({
  "name": "probe",
  "source": "probe.cu",
  "problem": {"dims": {"N": "elements"}},
  "tunables": {"THREADS": [64, 128]},
  "default": [{"THREADS": 128}],
  "arguments": {
    "x": {"buffer": "f32", "extent": "N", "role": "out"},
    "n": {"scalar": "i64", "expr": "N"},
    "s": {"scalar": "f32", "from": "caller", "bench": 1}
  },
  "launches": [
    {"entry": "probe", "arguments": ["x", "n", "s"], "grid": ["cdiv(N, THREADS)"], "block": ["THREADS"]}
  ],
  "reference": "default",
  "tolerance": {"f32": {"rtol": 0, "atol": 0}}
})json";

/// Compiles for one architecture with one NVRTC.
class Probe {
 public:
  Probe(const Toolchain& toolchain, std::string architecture)
      : toolbox_(
            [] {
              AgentOptions options;
              options.worker_program = bin_dir() / "cubind-worker";
              return options;
            }(),
            {{toolchain}, {}}),
        architecture_(std::move(architecture)) {}

  /// The faults of a kernel "probe" with this declaration: "void probe(float* x)".
  Faults faults(const std::string& declaration, std::int64_t n = 4096, std::int64_t threads = 128) {
    return faults_of(
        kSpec, "struct Three { int a, b, c; };\nstruct Large { float v[1500]; };\n" + declaration + " {}", n,
        threads);
  }
  Faults faults_of(const std::string& spec, const std::string& source, std::int64_t n = 4096,
                   std::int64_t threads = 128) {
    v1::CheckOrder order;
    to_wire(SpecBundle{"probe.json", spec, {{"probe.cu", source}}}, *order.mutable_spec());
    to_wire(Problem{{{"N", n}}, {}, {}, ""}, *order.mutable_problem());
    to_wire(Configuration{{{"THREADS", threads}}}, *order.mutable_configuration());
    to_wire(kH200, *order.mutable_device_constants());
    order.set_architecture(architecture_);
    JobStop stop;
    const v1::CheckResult result = run_check(order, toolbox_, stop);
    INFO(source << "\n" << result.log());
    REQUIRE(result.outcome() == v1::CORRECT);
    Faults faults;
    for (const v1::SpecFault& fault : result.faults()) {
      faults.push_back({fault.pointer(), fault.cause(), fault.is_limit()});
    }
    return faults;
  }

 private:
  Toolbox toolbox_;
  std::string architecture_;
};

EntryFault third_argument(const std::string& parameter) {
  return {"/launches/0/arguments/2", "s is a scalar f32 (float), the entry's parameter is " + parameter};
}

void check_arguments(Probe& probe) {
  const std::string plain = "__global__ void probe(float* x, long long n, ", c = "extern \"C\" ";
  CHECK(probe.faults(plain + "float s)").empty());
  CHECK(probe.faults(c + plain + "float s)").empty());
  for (const auto& [type, told] :
       {std::pair("Three", "Three of 12 bytes"), std::pair("float4", "float4 of 16 bytes"),
        std::pair("uint3", "uint3 of 12 bytes"), std::pair("dim3", "dim3 of 12 bytes"),
        std::pair("Large", "Large of 6000 bytes"), std::pair("const float&", "float const&")}) {
    CHECK(probe.faults(plain + type + " s)") == Faults{third_argument(told)});
  }
  CHECK(probe.faults(c + plain + "Three s)") == Faults{third_argument("of 12 bytes")});
  CHECK(probe.faults(c + plain + "const float& s)") == Faults{third_argument("of 8 bytes")});
  // A pointer, a reference and a scalar of 8 bytes look alike where the symbol tells no types.
  CHECK(probe.faults(c + "__global__ void probe(float* x, const long long& n, float s)").empty());
  CHECK(probe.faults(c + "__global__ void probe(float* x, long long n)") ==
        Faults{{"/launches/0/arguments", "has 3, the entry takes 2: (of 8 bytes, of 8 bytes)"}});
  CHECK(probe.faults(c + plain + "float s, short t)") ==
        Faults{{"/launches/0/arguments",
                "has 3, the entry takes 4: (of 8 bytes, of 8 bytes, of 4 bytes, of 2 bytes)"}});
  CHECK(probe.faults(c + "__global__ void probe()") ==
        Faults{{"/launches/0/arguments", "has 3, the entry takes 0: ()"}});
}

// The argument s is the content of a variable of 100 floats.
void check_variables(Probe& probe) {
  OrderedJson spec = OrderedJson::parse(kSpec);
  spec["arguments"]["s"] = {
      {"buffer", "f32"}, {"extent", "N"}, {"role", "in"}, {"symbol", "ns::s<{THREADS}>"}};
  const std::string source =
      "namespace ns { template <int N> __constant__ float s[100]; }\n"
      "__global__ void probe(float* x, long long n) { x[0] = ns::s<128>[n]; }";
  CHECK(probe.faults_of(spec.dump(), source, 100).empty());
  CHECK(probe.faults_of(spec.dump(), source, 101) ==
        Faults{{"/launches/0/arguments/2", "s has 404 bytes, the variable ns::s<128> holds 400", true}});
}

void check_bounds(Probe& probe) {
  const std::string name = " probe(float* x, long long n, float s)";
  const std::string bounded = "__global__ void __launch_bounds__(64)" + name;
  CHECK(probe.faults(bounded, 4096, 64).empty());
  const Faults found = probe.faults(bounded);
  REQUIRE(found.size() == 1);
  CHECK(found[0].pointer == "/launches/0/block");
  CHECK(found[0].is_limit);
  CHECK_THAT(found[0].cause, Contains("128 x 1 x 1") && Contains("at most 64"));
}

void check_clusters(Probe& probe) {
  const std::string name = " probe(float* x, long long n, float s)";
  const Faults sized = probe.faults("__global__ void __block_size__((64, 2, 1))" + name);
  REQUIRE(sized.size() == 1);
  CHECK_THAT(sized[0].cause, Contains("for blocks of 64 x 2 x 1"));
  CHECK(sized[0].is_limit);
  CHECK(probe.faults("__global__ void __block_size__((128, 1, 1))" + name).empty());
  const std::string clustered = "__global__ void __cluster_dims__(2, 1, 1)" + name;
  CHECK(probe.faults(clustered).empty());
  const Faults odd = probe.faults(clustered, std::int64_t{3} * 128);
  REQUIRE(odd.size() == 1);
  CHECK(odd[0].pointer == "/launches/0/grid");
  CHECK_THAT(odd[0].cause, Contains("a grid of 3 x 1 x 1") && Contains("clusters of 2 x 1 x 1"));
}

}  // namespace

TEST_CASE("arguments are compared with the parameters of real cubins by type and size") {
  for (const Toolchain& toolchain : toolchains()) {
    for (const char* architecture : {"sm_80", "sm_120"}) {
      INFO(toolchain.name() << " " << architecture);
      Probe probe(toolchain, architecture);
      check_arguments(probe);
      check_variables(probe);
    }
  }
}

TEST_CASE("blocks and grids are compared with the limits of real cubins") {
  for (const Toolchain& toolchain : toolchains()) {
    for (const char* architecture : {"sm_80", "sm_90", "sm_120"}) {
      INFO(toolchain.name() << " " << architecture);
      Probe probe(toolchain, architecture);
      check_bounds(probe);
      if (std::string_view(architecture) != "sm_80") {  // which has no clusters
        check_clusters(probe);
      }
    }
  }
}

}  // namespace cubind::test
