#include <cstdint>
#include <utility>

#include "base/error.hpp"
#include "base/hex.hpp"
#include "base/json.hpp"
#include "base/json_node.hpp"
#include "base/text.hpp"
#include "tuner/agent/compile/compiler_program.hpp"
#include "tuner/sandbox/landlock.hpp"
#include "tuner/sandbox/syscall_filter.hpp"

namespace cubind {
namespace {

constexpr const char* kWorker = "Triton's compile worker";
constexpr int kWarp = 32;
constexpr std::int64_t kTensorMemoryColumns = 512;
// The parent ends a compile at its deadline by the clock, in the background much later: the worker's own
// limit is beyond both. Processor time is limited in the same way for all.
constexpr std::int64_t kPatience = 60;

// From this version on Landlock keeps a compile's signals from other processes.
constexpr int kLandlockOfSignals = 6;

// frame = header_length (u32, little-endian) header (JSON) bytes
std::string joined(const std::string& header, const std::string& bytes) {
  std::string frame;
  for (unsigned shift = 0; shift < 32; shift += 8) {
    frame += static_cast<char>((header.size() >> shift) & 0xff);
  }
  return frame + header + bytes;
}

std::pair<OrderedJson, std::string> parts_of(const std::string& frame) {
  std::size_t length = 0;
  for (unsigned i = 0; i < 4 && i < frame.size(); ++i) {
    length |= std::size_t{static_cast<unsigned char>(frame[i])} << (8 * i);
  }
  if (frame.size() < 4 || length > frame.size() - 4) {
    throw Error(ErrorCode::Internal, kWorker, "sent something that is not a message");
  }
  return {parse_json_strict(frame.substr(4, length), kWorker), frame.substr(4 + length)};
}

// What of a launch only Triton's own launcher can do; empty: nothing.
std::string unsupported(const JsonNode& launch, std::int64_t warps) {
  std::int64_t cluster = 1;
  for (const JsonNode& axis : launch.at("cluster").elements()) {
    cluster *= axis.as_int64(1, 1024);
  }
  if (cluster != 1) {
    return "clusters";
  }
  if (launch.at("cooperative").as_bool()) {
    return "a cooperative launch";
  }
  if (launch.at("global_scratch_bytes").as_int64() != 0) {
    return "scratch memory in global memory, as descriptors made in the kernel do";
  }
  if (launch.at("profile_scratch_bytes").as_int64() != 0) {
    return "scratch memory of a profiler";
  }
  if (launch.at("tensor_memory_columns").as_int64() > kTensorMemoryColumns) {
    return "more tensor memory than a multiprocessor has";
  }
  if (launch.at("threads").as_int64() != warps * kWarp) {
    return "warps beyond num_warps, as warp specialization does";
  }
  return "";
}

std::uint32_t count(const JsonNode& node, const char* key) {
  return node.contains(key) ? static_cast<std::uint32_t>(node.at(key).as_int64(0, UINT32_MAX)) : 0;
}

void add_entry(const JsonNode& root, v1::CompileReply& reply) {
  const JsonNode launch = root.at("launch");
  reply.add_entry_symbols(launch.at("entry").as_nonempty_string());
  v1::EntryResources& entry = *reply.add_resources();
  entry.set_entry_symbol(reply.entry_symbols(0));
  entry.set_launch_shared_bytes(count(launch, "shared_bytes"));
  if (const auto resources = root.find("resources"); resources && resources->is_object()) {
    entry.set_registers(count(*resources, "registers"));
    entry.set_static_shared_bytes(count(*resources, "static_shared_bytes"));
    entry.set_local_bytes(count(*resources, "local_bytes"));
    entry.set_spill_store_bytes(count(*resources, "spill_store_bytes"));
    entry.set_spill_load_bytes(count(*resources, "spill_load_bytes"));
  }
}

class TritonProgram final : public CompilerProgram {
 public:
  TritonProgram(std::string python, std::string worker)
      : python_(std::move(python)),
        worker_(std::move(worker)),
        seccomp_(hex(compiler_filter(landlock_version() >= kLandlockOfSignals))) {}

  Command command(int fd, std::chrono::milliseconds deadline) const override {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(deadline).count() + 1;
    return {.program = python_,
            .arguments = {"-I", "-B", worker_, "--fd", std::to_string(fd), "--seconds",
                          std::to_string(kPatience * seconds), "--cpu-seconds", std::to_string(seconds),
                          "--seccomp", seccomp_},
            .limits_its_memory = true,
            .folder_prefix = "cubind-triton-"};
  }

  v1::CompileWorkerHello hello(const std::string& frame) const override {
    const auto [header, bytes] = parts_of(frame);
    const JsonNode root(header, kWorker);
    v1::CompileWorkerHello hello;
    hello.set_error(root.string_or("error", ""));
    if (hello.error().empty()) {
      v1::Toolchain& toolchain = *hello.mutable_toolchain();
      toolchain.set_name("triton " + root.at("triton").as_nonempty_string());
      for (const JsonNode& ptxas : root.at("ptxas").members()) {
        toolchain.add_architectures(ptxas.key());
        toolchain.add_assemblers(ptxas.as_string());
      }
      for (const JsonNode& lack : root.at("lacks").elements()) {
        toolchain.add_sandbox_lacks(lack.as_nonempty_string());
      }
    }
    return hello;
  }

  std::string request(const CompileInput& input, bool) const override {
    const v1::TritonCode& code = input.request.triton();
    const OrderedJson header = {{"architecture", input.request.architecture()},
                                {"triton", code.version()},
                                {"options", OrderedJson::parse(code.options())}};
    return joined(header.dump(), code.ttir());
  }

  v1::CompileReply reply(const std::string& frame, const CompileInput& input) const override {
    auto [header, cubin] = parts_of(frame);
    const JsonNode root(header, kWorker);
    v1::CompileReply reply;
    reply.set_outcome(v1::COMPILE);
    reply.set_log(valid_utf8(root.string_or("log", "")));
    enum : std::size_t { Correct, Refused, TimeOut, OutOfMemory };
    const std::size_t outcome =
        root.at("outcome").as_choice({"correct", "compile", "timeout", "out_of_memory"});
    // A limit that was met says nothing for good: another compile may end otherwise.
    reply.set_nvrtc_calls(outcome == Correct || outcome == Refused ? 1 : 0);
    if (outcome != Correct) {
      return reply;
    }
    const JsonNode launch = root.at("launch");
    const OrderedJson options = OrderedJson::parse(input.request.triton().options());
    const auto warps = options.at("num_warps").get<std::int64_t>();
    if (const std::string what = unsupported(launch, warps); !what.empty()) {
      reply.set_log("the compiled kernel needs " + what + ": only Triton itself launches that so far");
      return reply;
    }
    reply.set_outcome(v1::CORRECT);
    reply.set_compile_ms(launch.number_or("compile_ms", 0));
    reply.set_cubin(std::move(cubin));
    add_entry(root, reply);
    return reply;
  }

 private:
  const std::string python_, worker_, seccomp_;
};

}  // namespace

std::shared_ptr<const CompilerProgram> triton_program(std::string python, std::string worker) {
  return std::make_shared<const TritonProgram>(std::move(python), std::move(worker));
}

}  // namespace cubind
