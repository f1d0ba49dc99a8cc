#include "client/kernel.hpp"

#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "cuda_api/device_facts.hpp"
#include "cuda_api/driver_api.hpp"
#include "cuda_api/shared_memory.hpp"

namespace cubind {
namespace {

// The current context, else the primary one of the first visible device. The primary context is retained and
// never released, as CUDA's runtime does: threads that launched have it current, and would be left with a
// destroyed context.
class ContextHolder {
 public:
  explicit ContextHolder(const cuda::DriverApi& api) : api_(api) {
    const std::vector<cuda::DeviceOrdinal> visible = cuda::visible_devices(api);
    if (visible.empty()) {
      throw Error(ErrorCode::FailedPrecondition, "device", "the driver shows this process no GPU");
    }
    cuda::check(api, api.ctx_get_current(&context_), "cuCtxGetCurrent");
    if (context_ == nullptr) {
      cuda::check(api, api.primary_ctx_retain(&context_, visible.front()), "cuDevicePrimaryCtxRetain");
      cuda::check(api, api.ctx_set_current(context_), "cuCtxSetCurrent");
    }
  }

  cuda::Result make_current_if_none() const noexcept {
    cuda::Context current = nullptr;
    const cuda::Result result = api_.ctx_get_current(&current);
    return result == cuda::Result::Success && current == nullptr ? api_.ctx_set_current(context_) : result;
  }

 private:
  const cuda::DriverApi& api_;
  cuda::Context context_ = nullptr;
};

}  // namespace

struct LoadedKernel::Impl {
  Answer answer;
  std::shared_ptr<const cuda::DriverApi> api = cuda::load_driver();
  ContextHolder context{*api};
  cuda::Module module = nullptr;
  std::map<std::string, cuda::Function> functions;
  std::mutex mutex;  // held while the functions' limits of shared memory are raised

  explicit Impl(Answer given) : answer(std::move(given)) {
    cuda::check(*api, api->module_load_data(&module, answer.cubin().data()),
                "loading the cubin of " + answer.kernel());
    try {
      find_functions();
      grant_shared_memory(answer.plan());
    } catch (...) {
      api->module_unload(module);
      throw;
    }
  }
  ~Impl() {
    context.make_current_if_none();
    api->module_unload(module);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void find_functions();
  void grant_shared_memory(const LaunchPlan& plan);
  void launch(const LaunchPlan& plan, const Arguments& arguments, cuda::Stream stream) const;
  void enqueue(const Launch& launch, std::vector<ParameterBytes>& parameters, cuda::Stream stream) const;
};

// All that the rule's launches name: a launch that this problem leaves out may be needed for the next one.
void LoadedKernel::Impl::find_functions() {
  for (const std::string& symbol : answer.entry_symbols()) {
    cuda::Function function = nullptr;
    cuda::check(*api, api->module_get_function(&function, module, symbol.c_str()), "finding " + symbol);
    functions.emplace(symbol, function);
  }
}

void LoadedKernel::Impl::grant_shared_memory(const LaunchPlan& plan) {
  const std::lock_guard lock(mutex);
  for (const Launch& launch : plan.launches) {
    cuda::allow_shared_memory(*api, functions.at(launch.entry_symbol), launch.shared_bytes, launch.entry);
  }
}

void LoadedKernel::Impl::launch(const LaunchPlan& plan, const Arguments& arguments,
                                cuda::Stream stream) const {
  refuse_unknown(answer.plan_template(), arguments);
  std::vector<std::vector<ParameterBytes>> packed;
  packed.reserve(plan.launches.size());
  for (const Launch& launch : plan.launches) {
    packed.push_back(pack_parameters(launch, arguments));
  }
  cuda::check(*api, context.make_current_if_none(), "making the context current");
  for (std::size_t i = 0; i < plan.launches.size(); ++i) {
    enqueue(plan.launches[i], packed[i], stream);
  }
}

void LoadedKernel::Impl::enqueue(const Launch& launch, std::vector<ParameterBytes>& parameters,
                                 cuda::Stream stream) const {
  std::vector<void*> pointers;
  pointers.reserve(parameters.size());
  for (ParameterBytes& parameter : parameters) {
    pointers.push_back(parameter.data());
  }
  cuda::check(
      *api,
      api->launch_kernel(functions.find(launch.entry_symbol)->second, launch.grid.x, launch.grid.y,
                         launch.grid.z, launch.block.x, launch.block.y, launch.block.z,
                         static_cast<unsigned>(launch.shared_bytes), stream, pointers.data(), nullptr),
      "launching " + launch.entry);
}

LoadedKernel::LoadedKernel(Answer answer) : impl_(std::make_unique<Impl>(std::move(answer))) {}
LoadedKernel::~LoadedKernel() = default;
LoadedKernel::LoadedKernel(LoadedKernel&&) noexcept = default;
LoadedKernel& LoadedKernel::operator=(LoadedKernel&&) noexcept = default;

const Answer& LoadedKernel::answer() const { return impl_->answer; }

void LoadedKernel::launch(const Arguments& arguments, cuda::Stream stream) const {
  impl_->launch(impl_->answer.plan(), arguments, stream);
}

void LoadedKernel::launch(const Problem& problem, const Arguments& arguments, cuda::Stream stream) const {
  const std::optional<Answer> other = impl_->answer.for_problem(problem);
  if (!other) {
    throw Error(ErrorCode::NotFound, "problem",
                "the answer for " + to_string(impl_->answer.problem()) + " does not reach " +
                    to_string(problem) + ": ask the client for it");
  }
  impl_->grant_shared_memory(other->plan());
  impl_->launch(other->plan(), arguments, stream);
}

}  // namespace cubind
