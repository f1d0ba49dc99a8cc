// Compiles configurations of a kernel as an agent does, with precompiled headers and without.
//
// compile_all WORKER SPEC CONFIGURATIONS PROCESSES NAME=VALUE...: the first valid configurations for an
// H200, for the problem with these dims. Prints one JSON object.
#include <sys/resource.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "base/digest.hpp"
#include "base/error.hpp"
#include "tuner/agent/compile/compile_service.hpp"
#include "tuner/agent/compile/kernel_language.hpp"
#include "tuner/spec/keys.hpp"
#include "tuner/spec/space.hpp"
#include "tuner/toolchain/toolchain.hpp"

namespace cubind {
namespace {

using Clock = std::chrono::steady_clock;

constexpr DeviceConstants kH200{132, 232448, 62914560, 90};
constexpr std::chrono::minutes kPatience{10};

Problem problem_of(const KernelSpec& spec, int argc, char** argv) {
  Problem problem;
  for (int i = 5; i < argc; ++i) {
    const std::string text = argv[i];
    const std::size_t equals = text.find('=');
    problem.dims.push_back({text.substr(0, equals), std::stoll(text.substr(equals + 1))});
  }
  for (const TypeSpec& type : spec.types) {
    problem.types.push_back({type.name, type.choices.front()});
  }
  return spec.canonicalize(problem, "problem");
}

std::vector<CompileInput> inputs_of(const std::shared_ptr<const KernelSpec>& spec, const Problem& problem,
                                    const KernelBuild& build, std::uint64_t most) {
  const KernelSpace space(*spec, problem, kH200);
  std::vector<CompileInput> inputs;
  for (std::uint64_t i = 0; i < std::min(most, space.numbers().count()); ++i) {
    inputs.push_back(build.request(
        artifact_source(*spec, problem, space.configuration(i), spec->arch_features ? "sm_90a" : "sm_90")));
  }
  return inputs;
}

// A macro with a comment forbids a precompiled header and changes nothing else.
void forbid_headers(CompileInput& input) { input.request.add_defines("CUBIND_PLAIN=/**/"); }

// Of the processes that have ended.
double processor_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

struct Run {
  double seconds = 0;
  double processor_seconds = 0;
  std::vector<Digest> cubins;
};

Run compile(const CompileServiceOptions& options, const std::vector<CompileInput>& inputs,
            unsigned processes) {
  CompileServiceOptions fresh = options;
  fresh.slots = std::make_shared<CompileSlots>(processes);
  CompileService service(fresh);
  service.keep_ready(processes);
  service.probe();
  Run result;
  const auto begin = Clock::now();
  std::vector<Digest> keys;
  for (const CompileInput& input : inputs) {
    keys.push_back(Digest::of(input.request.SerializeAsString()));
    service.want(keys.back(), CompilePriority::Tuning, [&] { return input; });
  }
  for (const Digest& key : keys) {
    const Compiler::ResultPtr done = service.wait(key, kPatience);
    if (!done || done->reply.outcome() != v1::CORRECT) {
      throw Error(ErrorCode::Internal, "compile", done ? done->reply.log() : "too long");
    }
    result.cubins.push_back(Digest::of(done->reply.cubin()));
  }
  result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return result;
}

Run run(const CompileServiceOptions& options, const std::vector<CompileInput>& inputs, unsigned processes) {
  const double before = processor_seconds();
  Run result = compile(options, inputs, processes);
  result.processor_seconds = processor_seconds() - before;
  return result;
}

void print(int argc, char** argv) {
  FileDigests digests;
  const Toolchain toolchain = find_toolchains(ToolchainSearch::of_process(), digests).toolchains.at(0);
  const auto processes = static_cast<unsigned>(std::stoul(argv[4]));
  CompileServiceOptions options;
  options.program = nvrtc_program(argv[1], toolchain.nvrtc, toolchain.builtins);
  options.deadline = kPatience;
  options.nice = 0;
  const auto spec = load_kernel_spec(argv[2]);
  const KernelBuild build = nvrtc_language(toolchain)->build(spec);
  const auto inputs = inputs_of(spec, problem_of(*spec, argc, argv), build, std::stoull(argv[3]));
  auto plain = inputs;
  std::ranges::for_each(plain, forbid_headers);
  const Run without = run(options, plain, processes);
  const Run with = run(options, inputs, processes);
  std::cout << nlohmann::ordered_json{{"toolchain", toolchain.name()},
                                      {"configurations", inputs.size()},
                                      {"processes", processes},
                                      {"without_s", without.seconds},
                                      {"with_s", with.seconds},
                                      {"without_cpu_s", without.processor_seconds},
                                      {"with_cpu_s", with.processor_seconds},
                                      {"same_bytes", with.cubins == without.cubins}}
            << "\n";
}

}  // namespace
}  // namespace cubind

int main(int argc, char** argv) {
  if (argc < 5) {
    std::cerr << "usage: compile_all WORKER SPEC CONFIGURATIONS PROCESSES NAME=VALUE...\n";
    return 2;
  }
  try {
    cubind::print(argc, argv);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
