#include "client/kernel.hpp"

#include <utility>
#include <vector>

#include "base/error.hpp"
#include "client/rule.hpp"
#include "cuda_api/driver_api.hpp"

namespace cubind {
namespace {

BoundKernel bind(const Answer& answer) {
  auto module = std::make_shared<CubinModule>(cuda::load_driver(), answer.cubin(),
                                              BoundKernel::symbols(*answer.rule()), answer.kernel());
  return {answer.rule(), std::move(module)};
}

}  // namespace

struct LoadedKernel::Impl {
  Answer answer;
  BoundKernel bound;
  PreparedLaunch prepared;

  explicit Impl(Answer given)
      : answer(std::move(given)),
        bound(bind(answer)),
        prepared(bound.prepare(dim_values(answer.problem())).value()) {}
};

LoadedKernel::LoadedKernel(Answer answer) : impl_(std::make_unique<Impl>(std::move(answer))) {}
LoadedKernel::~LoadedKernel() = default;
LoadedKernel::LoadedKernel(LoadedKernel&&) noexcept = default;
LoadedKernel& LoadedKernel::operator=(LoadedKernel&&) noexcept = default;

const Answer& LoadedKernel::answer() const { return impl_->answer; }

const BoundKernel& LoadedKernel::bound() const { return impl_->bound; }

void LoadedKernel::launch(const Arguments& arguments, cuda::Stream stream) const {
  impl_->prepared.launch(number_arguments(impl_->bound.arguments(), arguments), stream,
                         AfterCapture::AnyBuffers);
}

void LoadedKernel::launch(const Problem& problem, const Arguments& arguments, cuda::Stream stream) const {
  const std::vector<ArgumentValue> values = number_arguments(impl_->bound.arguments(), arguments);
  if (!impl_->answer.for_problem(problem) || !impl_->bound.launch(dim_values(problem), values, stream)) {
    throw Error(ErrorCode::NotFound, "problem",
                "the answer for " + to_string(impl_->answer.problem()) + " does not reach " +
                    to_string(problem) + ": ask the client for it");
  }
}

}  // namespace cubind
