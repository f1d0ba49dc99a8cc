#include "client/cubin_module.hpp"

#include <utility>

#include "base/error.hpp"
#include "cuda_api/device_facts.hpp"
#include "cuda_api/shared_memory.hpp"

namespace cubind {

CubinModule::CubinModule(std::shared_ptr<const cuda::DriverApi> api, const std::string& cubin,
                         const std::vector<std::string>& symbols, const std::string& kernel)
    : api_(std::move(api)), granted_(symbols.size()) {
  choose_context();
  module_ = std::make_unique<LoadedModule>(*api_, cubin, symbols, kernel);
}

CubinModule::~CubinModule() {
  try {
    const Current current(*this);
    module_.reset();
  } catch (const cuda::DriverError&) {
    // The context has gone, and the module with it: a process that ends takes CUDA down first.
    static_cast<void>(module_.release());
  }
}

// The primary context is retained and never released, as CUDA's runtime does: threads that launched have it
// current, and would be left with a destroyed context.
void CubinModule::choose_context() {
  const std::vector<cuda::DeviceOrdinal> visible = cuda::visible_devices(*api_);
  if (visible.empty()) {
    throw Error(ErrorCode::FailedPrecondition, "device", "the driver shows this process no GPU");
  }
  cuda::check(*api_, api_->ctx_get_current(&context_), "cuCtxGetCurrent");
  if (context_ == nullptr) {
    cuda::check(*api_, api_->primary_ctx_retain(&context_, visible.front()), "cuDevicePrimaryCtxRetain");
    cuda::check(*api_, api_->ctx_set_current(context_), "cuCtxSetCurrent");
  }
}

ModuleVariable CubinModule::variable(const std::string& symbol) const {
  const Current current(*this);
  return module_->variable(symbol);
}

CubinModule::Current::Current(const CubinModule& module) : module_(module) {
  cuda::Context now = nullptr;
  cuda::check(*module.api_, module.api_->ctx_get_current(&now), "cuCtxGetCurrent");
  if (now != module.context_) {
    cuda::check(*module.api_, module.api_->ctx_set_current(module.context_), "making the context current");
    before_ = now;
  }
}

CubinModule::Current::~Current() {
  if (before_ != nullptr) {
    module_.api_->ctx_set_current(before_);
  }
}

void CubinModule::grant_shared_memory(std::size_t index, std::uint64_t bytes) {
  std::atomic<std::uint64_t>& granted = granted_[index];
  if (bytes <= granted.load(std::memory_order_relaxed)) {
    return;
  }
  const std::lock_guard lock(mutex_);
  const Current current(*this);
  cuda::allow_shared_memory(*api_, module_->function(index), bytes, module_->symbols()[index]);
  if (bytes > granted.load(std::memory_order_relaxed)) {
    granted.store(bytes, std::memory_order_relaxed);
  }
}

}  // namespace cubind
