#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "schemas/worker.pb.h"
#include "tuner/worker/compile_ptx.hpp"
#include "tuner/worker/nvrtc_api.hpp"
#include "tuner/worker/precompiled_headers.hpp"

namespace cubind::worker {

/// Compiles one request after another with one NVRTC. For one thread.
///
/// A fault of a request (an option outside the list, an absolute include, a compiler error, a cubin above the
/// cap) is a reply with outcome COMPILE, and its log names the fault. Never throws for a request.
class ProgramCompiler {
 public:
  /// Compiles a tiny program, so that NVRTC loads everything that it loads lazily. Also learns which options
  /// this NVRTC knows among those that keep it from files and those that keep its output the same. Throws
  /// Error(Unavailable) with NVRTC's log if that fails.
  explicit ProgramCompiler(const NvrtcLibrary& library);

  /// From here on configurations of a kernel share its headers precompiled. That takes a few descriptors.
  void precompile_headers();
  /// Frees the precompiled header.
  void forget_precompiled();

  /// Keeps the headers of `request.header_set`, for requests that name it by its digest.
  v1::CompileReply compile(v1::CompileRequest request);

 private:
  static void check_request(const v1::CompileRequest& request);
  void keep_headers(v1::HeaderSet& set);
  std::vector<std::string> options_for(const v1::CompileRequest& request) const;
  /// A program that was compiled, NVRTC's answer and its log.
  struct Compiled {
    std::unique_ptr<NvrtcProgram> program;
    NvrtcStatus status = NvrtcStatus::Fault;
    std::string log;
  };
  Compiled run(const v1::CompileRequest& request, const std::string& source,
               const std::vector<std::string>& options) const;
  /// With a precompiled header if that saves time. `options`: without those that define macros.
  Compiled run(const v1::CompileRequest& request, std::vector<std::string> options);
  void compile_checked(const v1::CompileRequest& request, v1::CompileReply& reply);
  static void refuse_unmeasurable(const v1::CompileRequest& request, const PtxModule& ptx,
                                  const std::set<std::string>& set, v1::CompileReply& reply);
  static void describe_entries(const v1::CompileRequest& request, const NvrtcProgram& program,
                               const std::string& log, v1::CompileReply& reply);

  const NvrtcLibrary& library_;
  std::vector<std::string> standing_options_;
  bool knows_minimal_ = false;
  v1::HeaderSet kept_headers_;
  std::optional<Error> headers_fault_;  // of each compile with them
  std::optional<PrecompiledHeaders> precompiled_;
};

}  // namespace cubind::worker
