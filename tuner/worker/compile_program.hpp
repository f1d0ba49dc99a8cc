#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <vector>

#include "schemas/worker.pb.h"
#include "tuner/worker/nvrtc_api.hpp"

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

  v1::CompileReply compile(const v1::CompileRequest& request);

 private:
  void check_request(const v1::CompileRequest& request);
  void check_header(const v1::SourceFile& header);
  std::vector<std::string> options_for(const v1::CompileRequest& request) const;
  void compile_checked(const v1::CompileRequest& request, v1::CompileReply& reply);
  static void describe_entries(const v1::CompileRequest& request, const NvrtcProgram& program,
                               const std::string& log, v1::CompileReply& reply);

  const NvrtcLibrary& library_;
  std::vector<std::string> standing_options_;
  bool knows_minimal_ = false;
  /// Headers that passed the checks, by name. The configurations of one kernel come with the same 1.6 MB of
  /// toolkit headers; reading them again would take longer than the compile.
  std::unordered_map<std::string, std::string> checked_headers_;
  std::size_t checked_bytes_ = 0;
};

}  // namespace cubind::worker
