#include "cuda_api/driver_api.hpp"

#include "cuda_api/shared_library.hpp"

namespace cubind::cuda {
namespace {

void* require_symbol(const SharedLibrary& library, const char* symbol) {
  if (void* address = library.symbol(symbol)) {
    return address;
  }
  throw Error(ErrorCode::FailedPrecondition, library.path(),
              std::string("has no ") + symbol + "; cubind needs NVIDIA driver branch 525 or later");
}

}  // namespace

std::vector<std::string> driver_candidates() {
  // After the loader's own search: where container runtimes and WSL mount the driver.
  return {"libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"};
}

std::shared_ptr<const DriverApi> find_driver(std::string& why, const std::vector<std::string>& candidates) {
  std::string tried;
  const auto library = SharedLibrary::open_first(candidates, tried);
  if (!library) {
    why = "no NVIDIA driver is here: " + tried;
    return nullptr;
  }
  auto api = std::make_shared<DriverApi>();
  api->library = library->path();
#define CUBIND_LOAD(member, exported, parameters) \
  api->member = reinterpret_cast<Result(*) parameters>(require_symbol(*library, #exported));
  CUBIND_DRIVER_FUNCTIONS(CUBIND_LOAD)
#undef CUBIND_LOAD
  return api;
}

std::shared_ptr<const DriverApi> load_driver(const std::vector<std::string>& candidates) {
  std::string why;
  auto api = find_driver(why, candidates);
  if (!api) {
    throw Error(ErrorCode::FailedPrecondition, "GPU", why);
  }
  return api;
}

std::string describe(const DriverApi& api, Result result) {
  const char* name = nullptr;
  const char* text = nullptr;
  const bool known = api.get_error_name(result, &name) == Result::Success && name != nullptr;
  const bool told = api.get_error_string(result, &text) == Result::Success && text != nullptr;
  std::string message = known ? name : "CUDA error";
  message += " (" + std::to_string(static_cast<int>(result)) + ")";
  if (told) {
    message += std::string(": ") + text;
  }
  return message;
}

bool is_sticky(Result result) {
  switch (result) {
    case Result::EccUncorrectable:
    case Result::NvlinkUncorrectable:
    case Result::IllegalAddress:
    case Result::LaunchTimeout:
    case Result::ContextIsDestroyed:
    case Result::Assert:
    case Result::HardwareStackError:
    case Result::IllegalInstruction:
    case Result::MisalignedAddress:
    case Result::InvalidAddressSpace:
    case Result::InvalidPc:
    case Result::LaunchFailed:
    case Result::Unknown:  // among others, of a GPU that has fallen off the bus
      return true;
    default:
      return false;
  }
}

DriverError::DriverError(const DriverApi& api, Result result, std::string_view operation)
    : Error(result == Result::OutOfMemory ? ErrorCode::ResourceExhausted : ErrorCode::FailedPrecondition,
            std::string(operation), describe(api, result)),
      result_(result) {}

}  // namespace cubind::cuda
