#include "tuner/worker/compile_worker.hpp"

#include <malloc.h>

#include <charconv>
#include <chrono>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/framing.hpp"
#include "base/text.hpp"
#include "schemas/worker.pb.h"
#include "tuner/worker/compile_program.hpp"
#include "tuner/worker/compile_sandbox.hpp"
#include "tuner/worker/modes.hpp"
#include "tuner/worker/nvrtc_api.hpp"

namespace cubind::worker {
namespace {

constexpr int kKeptFreeBytes = 64 << 20;
constexpr int kLargestHeapBlock = 32 << 20;

// How long a process without work keeps its precompiled header, which takes 100 MB and more.
constexpr std::chrono::seconds kKeptHeader{30};

// Memory that a compile frees stays for the next one, up to a bound. By default the heap shrinks after every
// compile, and the kernel clears the same pages again for the next.
void keep_freed_memory() {
  mallopt(M_TRIM_THRESHOLD, kKeptFreeBytes);
  mallopt(M_MMAP_THRESHOLD, kLargestHeapBlock);  // larger ones are mapped, and unmapped when they are freed
}

void send(int fd, const google::protobuf::MessageLite& message) {
  write_frame(fd, message.SerializeAsString());
}

void send_hello(int fd, const NvrtcLibrary& library, const std::vector<std::string>& lacks) {
  v1::CompileWorkerHello hello;
  v1::Toolchain& toolchain = *hello.mutable_toolchain();
  toolchain.set_name(library.name());
  toolchain.set_major(static_cast<std::uint32_t>(library.major()));
  toolchain.set_minor(static_cast<std::uint32_t>(library.minor()));
  for (const std::string& architecture : library.architectures()) {
    toolchain.add_architectures(architecture);
  }
  toolchain.mutable_sandbox_lacks()->Assign(lacks.begin(), lacks.end());
  send(fd, hello);
}

// The next request; absent: there will be none.
std::optional<std::string> next_frame(int fd, ProgramCompiler& compiler) {
  if (!wait_readable(fd, std::chrono::steady_clock::now() + kKeptHeader)) {
    compiler.forget_precompiled();
  }
  return read_frame(fd, kMaxCompileFrame);
}

ExitCode serve(int fd, ProgramCompiler& compiler, const CompileWorkerOptions& options) {
  while (const std::optional<std::string> frame = next_frame(fd, compiler)) {
    v1::CompileRequest request;
    if (!request.ParseFromString(*frame)) {
      throw Error(ErrorCode::DataLoss, "compile request", "not a CompileRequest");
    }
    allow_cpu_seconds(options.cpu_seconds);
    const v1::CompileReply reply = compiler.compile(std::move(request));
    send(fd, reply);
    if (reply.worker_ends()) {
      return ExitCode::Fault;
    }
  }
  return ExitCode::Done;
}

}  // namespace

CompileWorkerOptions parse_compile_worker_options(const std::vector<std::string>& arguments) {
  CompileWorkerOptions options;
  const auto refuse = [](const std::string& argument, const char* cause) {
    throw Error(ErrorCode::InvalidArgument, "cubind-worker compile", quoted(argument) + " " + cause);
  };
  for (std::size_t i = 0; i + 1 < arguments.size(); i += 2) {
    const std::string& name = arguments[i];
    const std::string& value = arguments[i + 1];
    if (name == "--nvrtc") {
      options.nvrtc = value;
    } else if (name == "--builtins") {
      options.builtins = value;
    } else if (name == "--cpu-seconds") {
      const auto [stop, error] =
          std::from_chars(value.data(), value.data() + value.size(), options.cpu_seconds);
      if (error != std::errc{} || stop != value.data() + value.size()) {
        refuse(value, "is not a number of seconds");
      }
    } else {
      refuse(name, "is not an option; known are --nvrtc, --builtins and --cpu-seconds");
    }
  }
  if (arguments.size() % 2 != 0) {
    refuse(arguments.back(), "has no value");
  }
  if (!options.nvrtc.is_absolute() || !options.builtins.is_absolute()) {
    refuse("--nvrtc, --builtins", "must both name a library by its absolute path");
  }
  return options;
}

ExitCode run_compile_worker(int fd, const std::vector<std::string>& arguments) {
  const CompileWorkerOptions options = parse_compile_worker_options(arguments);
  keep_freed_memory();
  std::optional<NvrtcLibrary> library;
  std::optional<ProgramCompiler> compiler;
  std::vector<std::string> lacks;
  try {
    library.emplace(options.nvrtc, options.builtins);
    compiler.emplace(*library);
    lacks = close_all_doors(fd);
    if (lacks.empty() && allow_memory_files(fd)) {
      compiler->precompile_headers();
    }
  } catch (const Error& error) {
    v1::CompileWorkerHello hello;
    hello.set_error(valid_utf8(error.what()));
    send(fd, hello);
    return ExitCode::Fault;
  }
  send_hello(fd, *library, lacks);
  return serve(fd, *compiler, options);
}

}  // namespace cubind::worker
