// Each kernel of variants/ as a machine without a GPU can look at it: its space is enumerated and its default
// and its reference compile, for a device of each compute capability that it is written for.
#include <catch2/catch.hpp>
#include <chrono>
#include <map>
#include <memory>

#include "tests/nvrtc/toolchains/toolchains.hpp"
#include "tests/support/docs.hpp"
#include "tests/support/paths.hpp"
#include "tuner/agent/compile/compile_process.hpp"
#include "tuner/agent/compile/compiler_program.hpp"
#include "tuner/agent/compile/kernel_language.hpp"
#include "tuner/spec/device_class.hpp"
#include "tuner/spec/entry_faults.hpp"
#include "tuner/spec/space.hpp"
#include "tuner/spec/spec_folder.hpp"

namespace cubind::test {
namespace {

constexpr DeviceConstants kA100{108, 166912, 41943040, 80}, kH200{132, 232448, 62914560, 90};
constexpr DeviceConstants kL40S{142, 101376, 100663296, 89}, kB200{148, 232448, 132644864, 100},
    kRtx5090{170, 101376, 100663296, 120};

using Specs = std::map<std::string, std::shared_ptr<const KernelSpec>>;

Specs shipped_specs() {
  const KnownSpecs known = load_specs({source_dir() / "variants"});
  CHECK(known.broken.empty());
  REQUIRE(known.specs.size() >= 13);
  return known.specs;
}

/// Every dim the same size, which each kernel takes: 128 is a head size, and divides itself.
Problem problem_of_size(const KernelSpec& spec, std::int64_t size) {
  Problem problem;
  for (const DimSpec& dim : spec.dims) {
    problem.dims.push_back({dim.name, size});
  }
  for (const TypeSpec& type : spec.types) {
    problem.types.push_back({type.name, type.choices.front()});
  }
  return spec.canonicalize(problem, "problem");
}

/// One worker compiles for all kernels.
class Compiler {
 public:
  v1::CompileReply kernel(const std::shared_ptr<const KernelSpec>& spec, const Problem& problem,
                          const Configuration& configuration, const DeviceConstants& device) {
    return compile(language_->build(spec).request(
        artifact_source(*spec, problem, configuration, architecture_of(*spec, device))));
  }
  v1::CompileReply reference(const std::shared_ptr<const KernelSpec>& spec, const Problem& problem,
                             const DeviceConstants& device) {
    return compile(language_->build(spec).reference_request(
        reference_artifact_source(*spec, problem, architecture_of(*spec, device))));
  }

 private:
  static std::string architecture_of(const KernelSpec& spec, const DeviceConstants& device) {
    return architecture(static_cast<std::uint32_t>(device.cc), spec.arch_features);
  }
  v1::CompileReply compile(const CompileInput& input) {
    INFO(input.request.architecture() << " " << input.request.entries(0));
    v1::CompileReply reply = worker_.compile(input, [] { return false; }).reply;
    INFO(reply.log());
    CHECK(reply.outcome() == v1::CORRECT);
    CHECK(reply.log().empty());
    return reply;
  }

  const Toolchain& toolchain_ = toolchains().front();
  const std::unique_ptr<KernelLanguage> language_ = nvrtc_language(toolchain_);
  const CompileWorkerOptions options_{
      .program = nvrtc_program(bin_dir() / "cubind-worker", toolchain_.nvrtc, toolchain_.builtins),
      .deadline = std::chrono::hours(1),
      .start_deadline = std::chrono::hours(1),
      .nice = 0};
  CompileProcess worker_{options_, false, [] { return false; }};
};

/// Each entry is reported whole by its cubin, and takes what the launches pass.
void compare(const v1::CompileReply& reply, const PlanTemplate& launches, const Problem& problem,
             const Configuration& configuration, const DeviceConstants& device) {
  const std::vector<std::string> symbols(reply.entry_symbols().begin(), reply.entry_symbols().end());
  std::vector<std::string> names;
  for (const LaunchTemplate& launch : launches.launches) {
    names.push_back(launch.entry);
  }
  const CompiledEntries entries = compiled_entries(reply.cubin(), names, symbols);
  for (const std::string& name : names) {
    REQUIRE(entries.at(name).parameters);
    CHECK(std::ranges::all_of(*entries.at(name).parameters,
                              [](const EntryParameter& one) { return one.bytes > 0; }));
  }
  const PlanResult planned =
      PlanEvaluator(launches, problem, configuration, device).evaluate(problem, configuration);
  REQUIRE(planned.plan);
  CHECK(entry_faults(launches, *planned.plan, entries) == std::vector<EntryFault>{});
}

void compile_all(const DeviceConstants& device) {
  Compiler compiler;
  for (const auto& [name, spec] : shipped_specs()) {
    INFO(name);
    const Problem problem = problem_of_size(*spec, 128);
    const auto configuration = default_configuration(*spec, problem, device);
    REQUIRE(configuration);
    CHECK(std::ranges::find(spec->defaults, *configuration) != spec->defaults.end());
    compare(compiler.kernel(spec, problem, *configuration, device),
            spec->plan_template(problem, *configuration), problem, *configuration, device);
    if (spec->reference.kind == ReferenceSpec::Kind::Kernel) {
      compare(compiler.reference(spec, problem, device), spec->reference_template(problem), problem, {},
              device);
    }
  }
}

/// The first valid configuration of each engine that the device has.
std::vector<Configuration> one_of_each_engine(const KernelSpec& spec, const Problem& problem,
                                              const DeviceConstants& device) {
  std::map<std::int64_t, Configuration> engines;
  const KernelSpace space(spec, problem, device);
  for (std::uint64_t number = 0; number < space.numbers().count(); ++number) {
    const Configuration configuration = space.configuration(number);
    engines.try_emplace(configuration.value("ENGINE").value_or(0), configuration);
  }
  std::vector<Configuration> all;
  for (const auto& [engine, configuration] : engines) {
    all.push_back(configuration);
  }
  return all;
}

}  // namespace

TEST_CASE("each kernel and its reference compile at the default for compute capability 8.0") {
  compile_all(kA100);
}

TEST_CASE("each kernel and its reference compile at the default for compute capability 8.9") {
  compile_all(kL40S);
}

TEST_CASE("each kernel and its reference compile at the default for compute capability 9.0") {
  compile_all(kH200);
}

TEST_CASE("each kernel and its reference compile at the default for compute capability 10.0") {
  compile_all(kB200);
}

TEST_CASE("each kernel and its reference compile at the default for compute capability 12.0") {
  compile_all(kRtx5090);
}

TEST_CASE("the examples of the page on kernels of your own pass the readers and compile") {
  Compiler compiler;
  for (const auto& [heading, name] :
       {std::pair("# A kernel of your own", "scale"), std::pair("## Two launches and scratch", "column_sums"),
        std::pair("## Tensor maps", "transpose")}) {
    INFO(name);
    const std::string page = "kernels.md";
    const auto spec = parse_kernel_spec({std::string(name) + ".json",
                                         code_block(page, heading, "json"),
                                         {{std::string(name) + ".cu", code_block(page, heading, "cuda")}}});
    CHECK(spec->name == name);
    const Problem problem = problem_of_size(*spec, 128);
    const Configuration& configuration = spec->defaults.front();
    compare(compiler.kernel(spec, problem, configuration, kH200), spec->plan_template(problem, configuration),
            problem, configuration, kH200);
    if (spec->reference.kind == ReferenceSpec::Kind::Kernel) {
      compiler.reference(spec, problem, kH200);
    }
  }
}

TEST_CASE("each kernel has configurations to try on each device and few enough to try all") {
  for (const auto& [name, spec] : shipped_specs()) {
    for (const DeviceConstants& device : {kA100, kL40S, kH200, kB200, kRtx5090}) {
      for (const std::int64_t size : {64, 128}) {
        INFO(name << " at " << size << " on " << device.cc);
        const SpaceSize space = count_valid(*spec, problem_of_size(*spec, size), device);
        CHECK(space.valid > 1);
        CHECK(space.valid <= 600);
      }
    }
  }
}

constexpr std::string_view kBeside[] = {"_facts", "normalize_rows", "matmul_finish"};

/// Every entry that is launched has tensor cores' instructions but those before and after the products:
/// statistics, and sums of split products.
void check_tensor_cores(Compiler& compiler, const std::shared_ptr<const KernelSpec>& spec,
                        const Problem& problem, const Configuration& configuration,
                        const DeviceConstants& device) {
  const v1::CompileReply reply = compiler.kernel(spec, problem, configuration, device);
  const PlanTemplate launches = spec->plan_template(problem, configuration);
  const PlanResult planned =
      PlanEvaluator(launches, problem, configuration, device).evaluate(problem, configuration);
  REQUIRE(planned.plan);
  for (int i = 0; i < static_cast<int>(launches.launches.size()); ++i) {
    const std::string& entry = launches.launches[static_cast<std::size_t>(i)].entry;
    const auto of_entry =
        std::ranges::find(reply.resources(), reply.entry_symbols(i), &v1::EntryResources::entry_symbol);
    const bool beside = std::ranges::any_of(
        kBeside, [&](std::string_view part) { return entry.find(part) != std::string::npos; });
    CAPTURE(entry);
    REQUIRE(of_entry != reply.resources().end());
    CHECK((of_entry->tensor_cores() != beside ||
           std::ranges::count(planned.plan->launches, entry, &Launch::entry) == 0));
  }
}

TEST_CASE("each engine of the products and of attention runs on tensor cores") {
  Compiler compiler;
  const Specs specs = shipped_specs();
  for (const auto& device : {kA100, kH200}) {
    for (const auto& [name, on_hopper] :
         {std::pair("matmul", 3U), std::pair("layernorm_linear", 3U),
          std::pair("flash_attention_forward", 2U), std::pair("flash_attention_backward", 2U)}) {
      const auto& spec = specs.at(name);
      const Problem problem = problem_of_size(*spec, 128);
      REQUIRE(problem.types.at(0).type == DType::Bf16);
      const auto configurations = one_of_each_engine(*spec, problem, device);
      CHECK(configurations.size() == (device.cc == 90 ? on_hopper : 1));
      for (const Configuration& configuration : configurations) {
        INFO(name << " " << to_string(configuration) << " for " << device.cc);
        check_tensor_cores(compiler, spec, problem, configuration, device);
      }
    }
  }
}

/// All that do not exclude each other.
void turn_on_flags(Problem& problem) {
  for (auto& flag : problem.flags) {
    flag.value = flag.name == "RIGHT" ? 0 : 1;
  }
}

TEST_CASE("both engines of attention compile for each head size, and with windows, caps, gaps and dropout") {
  Compiler compiler;
  const Specs specs = shipped_specs();
  for (const auto& name : {"flash_attention_forward", "flash_attention_backward",
                           "flash_attention_packed_forward", "flash_attention_packed_backward"}) {
    const auto& spec = specs.at(name);
    for (const std::int64_t head_size : {64, 80, 96, 256}) {
      Problem problem = problem_of_size(*spec, 128);
      problem.dims.back().value = head_size;
      REQUIRE(problem.dims.back().name == "D");
      if (problem.dims.front().name == "N") {
        problem.dims.front().value = 1;
      }
      if (head_size == 80) {
        turn_on_flags(problem);
      }
      const auto configurations = one_of_each_engine(*spec, problem, kH200);
      CHECK(configurations.size() == 2);
      for (const Configuration& configuration : configurations) {
        INFO(name << " " << head_size << " " << to_string(configuration));
        check_tensor_cores(compiler, spec, problem, configuration, kH200);
      }
      compiler.reference(spec, problem, kH200);
    }
  }
}

}  // namespace cubind::test
