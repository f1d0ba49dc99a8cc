#include "tuner/worker/nvrtc_api.hpp"

#include <dlfcn.h>
#include <nvrtc.h>

#include <algorithm>
#include <type_traits>

#include "base/error.hpp"

namespace cubind::worker {
namespace {

// A function of nvrtc.h with int where it has nvrtcResult, to hold the table against.
template <typename Function>
struct WithIntResult;
template <typename Result, typename... Arguments>
struct WithIntResult<Result(Arguments...)> {
  template <typename Type>
  using Plain = std::conditional_t<std::is_same_v<Type, nvrtcResult>, int, Type>;
  using Pointer = Plain<Result> (*)(Plain<Arguments>...);
};

#define CUBIND_CHECK_NVRTC(member, function)                                                        \
  static_assert(                                                                                    \
      std::is_same_v<decltype(NvrtcFunctions::member), WithIntResult<decltype(function)>::Pointer>, \
      #function " is not as nvrtc.h declares it")
CUBIND_CHECK_NVRTC(get_error_string, nvrtcGetErrorString);
CUBIND_CHECK_NVRTC(version, nvrtcVersion);
CUBIND_CHECK_NVRTC(get_num_supported_archs, nvrtcGetNumSupportedArchs);
CUBIND_CHECK_NVRTC(get_supported_archs, nvrtcGetSupportedArchs);
CUBIND_CHECK_NVRTC(create_program, nvrtcCreateProgram);
CUBIND_CHECK_NVRTC(destroy_program, nvrtcDestroyProgram);
CUBIND_CHECK_NVRTC(compile_program, nvrtcCompileProgram);
CUBIND_CHECK_NVRTC(get_ptx_size, nvrtcGetPTXSize);
CUBIND_CHECK_NVRTC(get_ptx, nvrtcGetPTX);
CUBIND_CHECK_NVRTC(get_cubin_size, nvrtcGetCUBINSize);
CUBIND_CHECK_NVRTC(get_cubin, nvrtcGetCUBIN);
CUBIND_CHECK_NVRTC(get_program_log_size, nvrtcGetProgramLogSize);
CUBIND_CHECK_NVRTC(get_program_log, nvrtcGetProgramLog);
CUBIND_CHECK_NVRTC(add_name_expression, nvrtcAddNameExpression);
CUBIND_CHECK_NVRTC(get_lowered_name, nvrtcGetLoweredName);
CUBIND_CHECK_NVRTC(set_pch_heap_size, nvrtcSetPCHHeapSize);
#undef CUBIND_CHECK_NVRTC
static_assert(sizeof(nvrtcResult) == sizeof(int));
static_assert(std::is_same_v<nvrtcProgram, NvrtcFunctions::Program>);

void* open_library(const std::filesystem::path& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* message = dlerror();
    throw Error(ErrorCode::Unavailable, path.string(), message != nullptr ? message : "cannot be loaded");
  }
  return library;
}

template <typename Function>
void resolve(void* library, const std::filesystem::path& path, const char* name, Function& function) {
  void* symbol = dlsym(library, name);
  if (symbol == nullptr) {
    throw Error(ErrorCode::Unavailable, path.string(),
                std::string(name) + " is missing: NVRTC 12 or 13 is needed");
  }
  function = reinterpret_cast<Function>(symbol);
}

NvrtcStatus status_of(int result) {
  switch (result) {
    case NVRTC_SUCCESS:
      return NvrtcStatus::Success;
    case NVRTC_ERROR_OUT_OF_MEMORY:
      return NvrtcStatus::OutOfMemory;
    case NVRTC_ERROR_INVALID_OPTION:
      return NvrtcStatus::InvalidOption;
    case NVRTC_ERROR_COMPILATION:
      return NvrtcStatus::CompileError;
    default:
      return NvrtcStatus::Fault;
  }
}

}  // namespace

NvrtcLibrary::NvrtcLibrary(const std::filesystem::path& nvrtc, const std::filesystem::path& builtins) {
  open_library(builtins);
  void* library = open_library(nvrtc);
  const auto get = [&](const char* name, auto& function) { resolve(library, nvrtc, name, function); };
  get("nvrtcGetErrorString", functions_.get_error_string);
  get("nvrtcVersion", functions_.version);
  get("nvrtcGetNumSupportedArchs", functions_.get_num_supported_archs);
  get("nvrtcGetSupportedArchs", functions_.get_supported_archs);
  get("nvrtcCreateProgram", functions_.create_program);
  get("nvrtcDestroyProgram", functions_.destroy_program);
  get("nvrtcCompileProgram", functions_.compile_program);
  get("nvrtcGetPTXSize", functions_.get_ptx_size);
  get("nvrtcGetPTX", functions_.get_ptx);
  get("nvrtcGetCUBINSize", functions_.get_cubin_size);
  get("nvrtcGetCUBIN", functions_.get_cubin);
  get("nvrtcGetProgramLogSize", functions_.get_program_log_size);
  get("nvrtcGetProgramLog", functions_.get_program_log);
  get("nvrtcAddNameExpression", functions_.add_name_expression);
  get("nvrtcGetLoweredName", functions_.get_lowered_name);
  functions_.set_pch_heap_size =
      reinterpret_cast<int (*)(std::size_t)>(dlsym(library, "nvrtcSetPCHHeapSize"));
  if (const int result = functions_.version(&major_, &minor_); result != NVRTC_SUCCESS) {
    throw Error(ErrorCode::Unavailable, nvrtc.string(), functions_.get_error_string(result));
  }
}

bool NvrtcLibrary::allow_precompiled_headers(std::size_t bytes) const {
  return functions_.set_pch_heap_size != nullptr && functions_.set_pch_heap_size(bytes) == NVRTC_SUCCESS;
}

std::string NvrtcLibrary::name() const {
  return "nvrtc " + std::to_string(major_) + "." + std::to_string(minor_);
}

std::vector<std::string> NvrtcLibrary::architectures() const {
  int count = 0;
  if (functions_.get_num_supported_archs(&count) != NVRTC_SUCCESS || count <= 0) {
    return {};
  }
  std::vector<int> numbers(static_cast<std::size_t>(count));
  if (functions_.get_supported_archs(numbers.data()) != NVRTC_SUCCESS) {
    return {};
  }
  std::vector<std::string> names;
  for (const int number : numbers) {
    names.push_back("sm_" + std::to_string(number));
  }
  return names;
}

NvrtcProgram::NvrtcProgram(const NvrtcLibrary& library, const std::string& name, const std::string& source,
                           const std::vector<Header>& headers)
    : functions_(library.functions()) {
  std::vector<const char*> names;
  std::vector<const char*> contents;
  for (const Header& header : headers) {
    names.push_back(header.name);
    contents.push_back(header.content);
  }
  check(functions_.create_program(&program_, source.c_str(), name.c_str(), static_cast<int>(headers.size()),
                                  contents.data(), names.data()),
        "nvrtcCreateProgram");
}

NvrtcProgram::~NvrtcProgram() { functions_.destroy_program(&program_); }

void NvrtcProgram::add_name_expression(const std::string& expression) {
  check(functions_.add_name_expression(program_, expression.c_str()), "nvrtcAddNameExpression");
}

NvrtcStatus NvrtcProgram::compile(const std::vector<std::string>& options) {
  std::vector<const char*> texts;
  for (const std::string& option : options) {
    texts.push_back(option.c_str());
  }
  const int result = functions_.compile_program(program_, static_cast<int>(texts.size()), texts.data());
  error_text_ = functions_.get_error_string(result);
  return status_of(result);
}

NvrtcProgram::Log NvrtcProgram::log(std::size_t max_bytes) const {
  Log log{.text = fetch(functions_.get_program_log_size, functions_.get_program_log, "nvrtcGetProgramLog")};
  std::erase(log.text, '\0');
  if (log.text.size() > max_bytes) {
    log.text.resize(max_bytes);
    log.truncated = true;
  }
  return log;
}

std::size_t NvrtcProgram::cubin_bytes() const {
  std::size_t size = 0;
  check(functions_.get_cubin_size(program_, &size), "nvrtcGetCUBINSize");
  return size;
}

std::string NvrtcProgram::cubin() const {
  std::string bytes(cubin_bytes(), '\0');
  check(functions_.get_cubin(program_, bytes.data()), "nvrtcGetCUBIN");
  return bytes;
}

std::string NvrtcProgram::ptx() const {
  std::string text = fetch(functions_.get_ptx_size, functions_.get_ptx, "nvrtcGetPTX");
  text.resize(std::min(text.find('\0'), text.size()));
  return text;
}

std::string NvrtcProgram::lowered_name(const std::string& expression) const {
  const char* name = nullptr;
  check(functions_.get_lowered_name(program_, expression.c_str(), &name), "nvrtcGetLoweredName");
  return name;
}

// A text of NVRTC's with its zero bytes: one at the end, and in a log one between what ptxas reports of the
// kernels and its errors.
std::string NvrtcProgram::fetch(int (*size_of)(NvrtcFunctions::Program, std::size_t*),
                                int (*get)(NvrtcFunctions::Program, char*), const char* what) const {
  std::size_t size = 0;
  check(size_of(program_, &size), what);
  std::string text(size, '\0');
  if (size > 0) {
    check(get(program_, text.data()), what);
  }
  return text;
}

void NvrtcProgram::check(int result, const char* what) const {
  if (result != NVRTC_SUCCESS) {
    throw Error(ErrorCode::Internal, what, functions_.get_error_string(result));
  }
}

}  // namespace cubind::worker
