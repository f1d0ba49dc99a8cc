#include "client/cubindctl/profile/launch_file.hpp"

#include "base/error.hpp"
#include "plan/wire.hpp"
#include "tuner/spec/problem_arguments.hpp"

namespace cubind::ctl {

v1::LaunchFile launch_file_of(const KernelSpec& spec, const Answer& answer) {
  if (answer.plan().launches.empty()) {
    throw Error(ErrorCode::InvalidArgument, to_string(answer.problem()),
                "has nothing to launch: every grid of the kernel has a zero");
  }
  v1::LaunchFile file;
  v1::PrepareProblem& problem = *file.mutable_problem();
  problem.set_kernel(spec.name);
  problem.set_reference("expected");
  to_wire(answer.problem(), *problem.mutable_problem());
  add_arguments(spec, answer.problem(), {&answer.plan()}, answer.cubin_digest(), problem);
  file.set_cubin(answer.cubin());
  to_wire(answer.plan(), *file.mutable_plan());
  return file;
}

}  // namespace cubind::ctl
