#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

struct _nvrtcProgram;  // NOLINT(bugprone-reserved-identifier): nvrtc.h calls it so

namespace cubind::worker {

/// NVRTC's functions, resolved by name from a library that is opened by its full path. The types are NVRTC's
/// own with int for its result enum; nvrtc_api.cpp holds them against nvrtc.h.
struct NvrtcFunctions {
  using Program = _nvrtcProgram*;

  const char* (*get_error_string)(int) = nullptr;
  int (*version)(int*, int*) = nullptr;
  int (*get_num_supported_archs)(int*) = nullptr;
  int (*get_supported_archs)(int*) = nullptr;
  int (*create_program)(Program*, const char*, const char*, int, const char* const*,
                        const char* const*) = nullptr;
  int (*destroy_program)(Program*) = nullptr;
  int (*compile_program)(Program, int, const char* const*) = nullptr;
  int (*get_ptx_size)(Program, std::size_t*) = nullptr;
  int (*get_ptx)(Program, char*) = nullptr;
  int (*get_cubin_size)(Program, std::size_t*) = nullptr;
  int (*get_cubin)(Program, char*) = nullptr;
  int (*get_program_log_size)(Program, std::size_t*) = nullptr;
  int (*get_program_log)(Program, char*) = nullptr;
  int (*add_name_expression)(Program, const char*) = nullptr;
  int (*get_lowered_name)(Program, const char*, const char**) = nullptr;
  int (*set_pch_heap_size)(std::size_t) = nullptr;  // from 12.8 on
};

/// The results of nvrtcCompileProgram that cubind tells apart.
enum class NvrtcStatus { Success, OutOfMemory, InvalidOption, CompileError, Fault };

/// A loaded NVRTC. Stays loaded until the process ends: NVRTC 13 keeps thread-local state that does not
/// survive dlclose. For one thread.
class NvrtcLibrary {
 public:
  /// Opens the builtins first: NVRTC looks for them by file name alone, which finds nothing if it was
  /// itself opened by path from a Python wheel; a library of that name that is already loaded is taken.
  /// Throws Error(Unavailable) with the loader's message, naming the file, or the function that is missing.
  NvrtcLibrary(const std::filesystem::path& nvrtc, const std::filesystem::path& builtins);

  const NvrtcFunctions& functions() const noexcept { return functions_; }
  int major() const noexcept { return major_; }
  int minor() const noexcept { return minor_; }
  std::string name() const;  // "nvrtc 13.0"
  /// Up to this size. False: this NVRTC knows none (before 12.8).
  bool allow_precompiled_headers(std::size_t bytes) const;
  std::vector<std::string> architectures() const;  // sm_75, sm_80, ...

 private:
  NvrtcFunctions functions_;
  int major_ = 0;
  int minor_ = 0;
};

/// One program. Methods throw Error(Internal) if NVRTC refuses a call that cannot fail.
class NvrtcProgram {
 public:
  struct Header {
    const char* name;
    const char* content;
  };

  /// NVRTC copies all texts. They must not hold a zero byte.
  NvrtcProgram(const NvrtcLibrary& library, const std::string& name, const std::string& source,
               const std::vector<Header>& headers);
  ~NvrtcProgram();
  NvrtcProgram(const NvrtcProgram&) = delete;
  NvrtcProgram& operator=(const NvrtcProgram&) = delete;

  void add_name_expression(const std::string& expression);
  NvrtcStatus compile(const std::vector<std::string>& options);

  /// NVRTC's words for the result of compile().
  const std::string& error_text() const noexcept { return error_text_; }

  /// The first max_bytes of the log; `truncated` says whether there was more.
  struct Log {
    std::string text;
    bool truncated = false;
  };
  Log log(std::size_t max_bytes) const;

  /// After success.
  std::size_t cubin_bytes() const;
  std::string cubin() const;
  std::string ptx() const;
  std::string lowered_name(const std::string& expression) const;

 private:
  std::string fetch(int (*size_of)(NvrtcFunctions::Program, std::size_t*),
                    int (*get)(NvrtcFunctions::Program, char*), const char* what) const;
  void check(int result, const char* what) const;

  const NvrtcFunctions& functions_;
  NvrtcFunctions::Program program_ = nullptr;
  std::string error_text_;
};

}  // namespace cubind::worker
