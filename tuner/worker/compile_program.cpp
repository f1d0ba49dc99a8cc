#include "tuner/worker/compile_program.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/error.hpp"
#include "base/refuse.hpp"
#include "base/text.hpp"
#include "plan/launch_plan.hpp"
#include "tuner/includes/include_closure.hpp"
#include "tuner/includes/nvrtc_options.hpp"
#include "tuner/worker/compile_log.hpp"
#include "tuner/worker/global_functions.hpp"
#include "tuner/worker/missing_header.hpp"
#include "tuner/worker/remedies.hpp"
#include "tuner/worker/unset_variables.hpp"

namespace cubind::worker {
namespace {

constexpr std::uint64_t kDefaultCubinBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kDefaultLogBytes = std::uint64_t{256} << 10;

// NVRTC's raw log is read up to this size: the statements of ptxas in it are needed, its messages are cut
// later.
constexpr std::size_t kRawLogBytes = std::size_t{16} << 20;

// NVRTC needs 180 MB for block algorithms of CUB and 270 MB for a GEMM of CUTLASS. The limit of a file in
// memory is a little higher.
constexpr std::size_t kPrecompiledBytes = std::size_t{512} << 20;

// What NVRTC mangles into the symbols of anonymous namespaces and static variables is made of the program's
// name, the process id and the time, all of which would reach the cubin and none of which is in the artifact
// key. So every program has this name, and the rest is drawn from a fixed seed: the same key gives the same
// bytes in every worker, and moving a source file changes nothing. Messages get the file's own name back.
constexpr std::string_view kProgramName = "cubind_kernel.cu";
constexpr const char* kFixedSeed = "--frandom-seed=cubind";

// Leaves declarations out that few kernels need, and changes no code: where NVRTC does not know it (before
// 12.4), it is dropped.
constexpr const char* kMinimal = "--minimal";

// NVRTC echoes lines of the source, whatever bytes they have.
void set_failed(v1::CompileReply& reply, const std::string& cause) {
  reply.clear_cubin();
  reply.clear_entry_symbols();
  reply.clear_resources();
  reply.clear_writes();
  reply.set_outcome(v1::COMPILE);
  reply.set_log(valid_utf8(cause));
}

std::string cut(std::string text, std::uint64_t max_bytes) {
  if (text.size() > max_bytes) {
    text = cut_utf8(text, max_bytes);
    text += "\n[the log is longer than " + std::to_string(max_bytes) + " bytes]\n";
  }
  return text;
}

// It compiles the entries' names as a file of its own.
constexpr std::string_view kNameMap = "__nv_name_map(", kEntry = "name of an entry";

/// What NVRTC says of a source, in words that a reader of the spec knows.
std::string readable(const std::string& log, const v1::CompileRequest& request, const NvrtcLibrary& library) {
  std::string text = replaced(parse_compile_log(log).messages, kProgramName, request.source_name());
  text = explain_missing_headers(text, library.major(), library.minor());
  text = with_remedies(text);
  for (std::size_t at = 0; (at = text.find(kNameMap, at)) != std::string::npos;) {
    text.replace(at, text.find(')', at) + 1 - at, kEntry);
  }
  if (const auto kernels = global_functions(request.source()); text.starts_with(kEntry) && !kernels.empty()) {
    text += "\n" + request.source_name() + " has the kernels " + join(kernels, ", ");
  }
  return text;
}

// A newer compiler may take what this one refuses: its version stands behind the first error.
std::string with_version(std::string messages, const NvrtcLibrary& library) {
  const std::size_t error = messages.find("error: ");
  const std::size_t end =
      std::min(messages.find('\n', error == std::string::npos ? 0 : error), messages.size());
  return messages.insert(end, " [" + library.name() + "]");
}

std::string field(const char* name, int index) {
  return std::string(name) + "[" + std::to_string(index) + "]";
}

// A text with a zero byte would end there for NVRTC, but not for the digest that the key holds.
void check_text(const std::string& name, const std::string& text) {
  if (text.find('\0') != std::string::npos) {
    refuse(name, "a source text must not contain a zero byte");
  }
}

void check_header(const v1::SourceFile& header) {
  if (header.path().starts_with('/')) {
    refuse(header.path(), "the name of a header must be relative");
  }
  check_text(header.path(), header.content());
  refuse_absolute_includes(header.path(), header.content());
}

std::optional<Error> fault_of(const v1::HeaderSet& headers) {
  try {
    for (const v1::SourceFile& header : headers.files()) {
      check_header(header);
    }
    return std::nullopt;
  } catch (const Error& fault) {
    return fault;
  }
}

struct FirstCompile {
  NvrtcStatus status = NvrtcStatus::Fault;
  std::string error;  // where there is no cubin
};

FirstCompile first_compile(const NvrtcLibrary& library, std::vector<std::string> options) {
  NvrtcProgram program(library, "first.cu", "__global__ void first(float* x) { x[0] = 1.0f; }\n", {});
  options.insert(options.end(), {"--gpu-architecture=sm_80", "--std=c++17", "--ptxas-options=-v"});
  const NvrtcStatus status = program.compile(options);
  const bool is_whole = status == NvrtcStatus::Success && !program.cubin().empty();
  return {status, is_whole ? "" : program.error_text() + "\n" + program.log(kDefaultLogBytes).text};
}

}  // namespace

ProgramCompiler::ProgramCompiler(const NvrtcLibrary& library) : library_(library) {
  standing_options_ = {"--no-cache", "--no-source-include", kFixedSeed, kMinimal};
  FirstCompile first = first_compile(library_, standing_options_);
  if (first.status == NvrtcStatus::InvalidOption) {
    // Only NVRTC 12.8 and later know all of them; without them the closed doors of the process remain.
    std::erase_if(standing_options_, [&](const std::string& option) {
      return first_compile(library_, {option}).status == NvrtcStatus::InvalidOption;
    });
    first = first_compile(library_, standing_options_);
  }
  knows_minimal_ = std::erase(standing_options_, kMinimal) > 0;
  if (!first.error.empty()) {
    throw Error(ErrorCode::Unavailable, library_.name(), "the first compile failed: " + first.error);
  }
}

v1::CompileReply ProgramCompiler::compile(v1::CompileRequest request) {
  v1::CompileReply reply;
  const auto begin = std::chrono::steady_clock::now();
  try {
    check_request(request);
    if (request.has_header_set()) {
      keep_headers(*request.mutable_header_set());
    }
    compile_checked(request, reply);
  } catch (const Error& error) {
    set_failed(reply, error.what());
  } catch (const std::bad_alloc&) {
    set_failed(reply, "out of memory: the compiler needed more than the cap of its process allows");
    reply.set_worker_ends(true);
  }
  const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - begin;
  reply.set_compile_ms(elapsed.count());
  return reply;
}

void ProgramCompiler::precompile_headers() {
  if (library_.allow_precompiled_headers(kPrecompiledBytes)) {
    precompiled_.emplace();
  }
}

void ProgramCompiler::forget_precompiled() {
  if (precompiled_) {
    precompiled_->forget();
  }
}

void ProgramCompiler::check_request(const v1::CompileRequest& request) {
  check_architecture(request.architecture(), "architecture");
  if (request.entries().empty()) {
    refuse("entries", "there must be at least one");
  }
  for (int i = 0; i < request.entries_size(); ++i) {
    check_name_expression(request.entries(i), field("entries", i));
  }
  for (int i = 0; i < request.defines_size(); ++i) {
    check_nvrtc_define(request.defines(i), field("defines", i));
  }
  check_text(request.source_name(), request.source());
  refuse_absolute_includes(request.source_name(), request.source());
  for (const v1::SourceFile& header : request.headers()) {
    check_header(header);
  }
}

void ProgramCompiler::keep_headers(v1::HeaderSet& set) {
  if (set.files().empty()) {
    if (set.digest() != kept_headers_.digest()) {
      refuse("header_set", "it is not the set that this worker keeps");
    }
  } else {
    kept_headers_.Swap(&set);
    headers_fault_ = fault_of(kept_headers_);
    if (precompiled_) {
      precompiled_->forget_names();
    }
  }
  if (headers_fault_) {
    throw Error(*headers_fault_);
  }
}

// Without those that define macros.
std::vector<std::string> ProgramCompiler::options_for(const v1::CompileRequest& request) const {
  const std::vector<std::string> asked(request.options().begin(), request.options().end());
  std::vector<std::string> options = canonical_nvrtc_options(asked, "options");
  if (!knows_minimal_) {
    std::erase(options, kMinimal);
  }
  const auto is_dialect = [](const std::string& option) { return option.starts_with("--std="); };
  if (std::ranges::none_of(options, is_dialect)) {
    options.emplace_back("--std=c++17");
  }
  options.push_back("--gpu-architecture=" + request.architecture());
  options.emplace_back("--ptxas-options=-v");
  options.insert(options.end(), standing_options_.begin(), standing_options_.end());
  return options;
}

ProgramCompiler::Compiled ProgramCompiler::run(const v1::CompileRequest& request, const std::string& source,
                                               const std::vector<std::string>& options) const {
  std::vector<NvrtcProgram::Header> headers;
  const auto add = [&](const auto& files) {
    for (const v1::SourceFile& header : files) {
      headers.push_back({header.path().c_str(), header.content().c_str()});
    }
  };
  add(request.headers());
  if (request.has_header_set()) {
    add(kept_headers_.files());
  }
  Compiled compiled;
  compiled.program = std::make_unique<NvrtcProgram>(library_, std::string(kProgramName), source, headers);
  for (const std::string& entry : request.entries()) {
    compiled.program->add_name_expression(entry);
  }
  compiled.status = compiled.program->compile(options);
  compiled.log = compiled.program->log(kRawLogBytes).text;
  return compiled;
}

ProgramCompiler::Compiled ProgramCompiler::run(const v1::CompileRequest& request,
                                               std::vector<std::string> options) {
  std::optional<PrecompiledHeaders::Attempt> attempt;
  if (precompiled_ && request.has_header_set()) {
    attempt = precompiled_->attempt(request, kept_headers_, options);
  }
  if (attempt) {
    Compiled compiled = run(request, attempt->source, attempt->options);
    if (precompiled_->accept(*attempt, compiled.log) && compiled.status == NvrtcStatus::Success) {
      return compiled;
    }
  }
  for (const std::string& define : request.defines()) {
    options.push_back("--define-macro=" + define);
  }
  Compiled compiled = run(request, request.source(), options);
  if (attempt && compiled.status == NvrtcStatus::Success) {
    precompiled_->refuse(attempt->key);
  }
  return compiled;
}

void ProgramCompiler::compile_checked(const v1::CompileRequest& request, v1::CompileReply& reply) {
  std::vector<std::string> options = options_for(request);
  reply.set_nvrtc_calls(1);
  const Compiled compiled = run(request, std::move(options));
  const NvrtcProgram& program = *compiled.program;
  const std::uint64_t max_log = request.max_log_bytes() != 0 ? request.max_log_bytes() : kDefaultLogBytes;
  if (compiled.status != NvrtcStatus::Success) {
    const std::string messages = readable(compiled.log, request, library_);
    set_failed(reply,
               cut(with_version(messages.empty() ? program.error_text() : messages, library_), max_log));
    reply.set_worker_ends(compiled.status == NvrtcStatus::OutOfMemory ||
                          compiled.status == NvrtcStatus::Fault);
    return;
  }
  const std::uint64_t max_cubin =
      request.max_cubin_bytes() != 0 ? request.max_cubin_bytes() : kDefaultCubinBytes;
  if (const std::size_t bytes = program.cubin_bytes(); bytes == 0 || bytes > max_cubin) {
    set_failed(reply, "the cubin has " + std::to_string(bytes) + " bytes, it may have 1 to " +
                          std::to_string(max_cubin));
    return;
  }
  describe_entries(request, program, compiled.log, reply);
  if (reply.outcome() == v1::CORRECT) {
    reply.set_log(cut(reply.log(), max_log));
    reply.set_cubin(program.cubin());
  }
}

// What would be launched with other data than a caller's.
void ProgramCompiler::refuse_unmeasurable(const v1::CompileRequest& request, const PtxModule& ptx,
                                          const std::set<std::string>& set, v1::CompileReply& reply) {
  for (int i = 0; i < request.entries_size() && reply.outcome() == v1::CORRECT; ++i) {
    const auto kernel = ptx.kernels.find(reply.entry_symbols(i));
    if (kernel == ptx.kernels.end()) {
      continue;
    }
    const std::string& texture = kernel->second.texture_instruction;
    const std::string unset = unset_variables(ptx, kernel->second, set, request);
    if (!texture.empty()) {
      set_failed(reply, "the entry " + quoted(request.entries(i)) + " uses a texture or surface (" + texture +
                            "), which cubind does not pass: read global memory, through __ldg() if it is "
                            "constant");
    } else if (!unset.empty()) {
      set_failed(reply, "the entry " + quoted(request.entries(i)) + ": " + unset);
    }
  }
}

void ProgramCompiler::describe_entries(const v1::CompileRequest& request, const NvrtcProgram& program,
                                       const std::string& log, v1::CompileReply& reply) {
  const CompileLog parsed = parse_compile_log(log);
  const std::vector<std::string> defines(request.defines().begin(), request.defines().end());
  if (const std::string define = redefined_macro(parsed.messages, defines); !define.empty()) {
    set_failed(reply,
               request.source_name() + " defines the macro " + quoted(define.substr(0, define.find('='))) +
                   " itself, so " + quoted(define) +
                   " of the spec has no effect: delete its #define, or put it between #ifndef and #endif");
    return;
  }
  const PtxModule ptx = read_ptx(program.ptx());
  std::set<std::string> set;
  reply.set_outcome(v1::CORRECT);
  reply.set_log(valid_utf8(replaced(parsed.messages, kProgramName, request.source_name())));
  for (const std::string& entry : request.entries()) {
    const std::string symbol = program.lowered_name(entry);
    reply.add_entry_symbols(symbol);
    if (is_variable(entry)) {
      set.insert(symbol);
      if (!ptx.variables.contains(symbol)) {
        set_failed(reply, quoted(entry.substr(1)) + " is not a __constant__ or __device__ variable");
        return;
      }
      continue;
    }
    const auto kernel = parsed.kernels.find(symbol);
    const auto of_ptx = ptx.kernels.find(symbol);
    if (kernel == parsed.kernels.end() || of_ptx == ptx.kernels.end()) {
      set_failed(reply, "the entry " + quoted(entry) + " is not a __global__ function");
      return;
    }
    v1::EntryResources& resources = *reply.add_resources();
    resources.set_entry_symbol(symbol);
    resources.set_registers(kernel->second.registers);
    resources.set_static_shared_bytes(kernel->second.static_shared_bytes);
    resources.set_local_bytes(kernel->second.local_bytes);
    resources.set_spill_store_bytes(kernel->second.spill_store_bytes);
    resources.set_spill_load_bytes(kernel->second.spill_load_bytes);
    resources.set_tensor_cores(of_ptx->second.has_tensor_cores);
    v1::EntryWrites& writes = *reply.add_writes();
    const ParameterUses& uses = of_ptx->second.uses;
    writes.set_known(uses.written.has_value());
    for (const std::uint32_t parameter : uses.written.value_or(std::set<std::uint32_t>())) {
      writes.add_parameters(parameter);
    }
    resources.set_loads_known(uses.loaded.has_value());
    for (const std::uint32_t parameter : uses.loaded.value_or(std::set<std::uint32_t>())) {
      resources.add_loaded(parameter);
    }
  }
  refuse_unmeasurable(request, ptx, set, reply);
}

}  // namespace cubind::worker
