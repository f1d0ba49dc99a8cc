#include "client/cubindctl/answers/stored_trials.hpp"

#include <algorithm>
#include <filesystem>

#include "base/error.hpp"
#include "base/text.hpp"
#include "client/request.hpp"
#include "plan/wire.hpp"
#include "tuner/spec/spec_folder.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind::ctl {
namespace {

StoredTrials exported(const Connection& connection, const v1::ExportTableRequest& request,
                      const CommonOptions& common) {
  const v1::TableChunk table = connection.export_table(request, common.deadline());
  return {read_table(table.json(), "the daemon's table"), table.shipped_left_out(),
          request.include_samples()};
}

// The kernels among which the name is to be found: callers may have defined thousands.
v1::ListKernelsReply kernels_around(const Connection& connection, const std::string& name,
                                    const CommonOptions& common) {
  v1::ListKernelsReply known = connection.list_kernels(common.deadline());
  const bool is_there =
      std::ranges::any_of(known.kernels(), [&](const v1::Kernel& kernel) { return kernel.name() == name; });
  if (!is_there && known.defined() > 0) {
    known.MergeFrom(connection.list_kernels(common.deadline(), true));
  }
  return known;
}

}  // namespace

std::shared_ptr<const KernelSpec> stored_spec(const Connection& connection, const std::string& name,
                                              const CommonOptions& common, const std::string& hint) {
  const v1::ListKernelsReply known = kernels_around(connection, name, common);
  std::vector<std::string> names;
  for (const v1::Kernel& kernel : known.kernels()) {
    if (!kernel.error().empty() && !kernel.keeps_last_good()) {
      continue;  // another file's kernel may have its name
    }
    names.push_back(kernel.name());
    if (kernel.name() == name && std::filesystem::exists(kernel.file())) {
      return load_kernel_spec(kernel.file());
    }
  }
  if (std::ranges::find(names, name) == names.end()) {
    throw Error(ErrorCode::NotFound, "kernel",
                quoted(name) + " is not known to the daemon" + suggestion(name, names) +
                    (hint.empty() ? "" : "; " + hint));
  }
  if (const auto shipped = shipped_variants()) {
    const KnownSpecs specs = load_specs({*shipped});
    if (const auto found = specs.specs.find(name); found != specs.specs.end()) {
      return found->second;
    }
  }
  throw Error(ErrorCode::FailedPrecondition, name,
              "its spec lies on the daemon's machine: run the command there, or where the file is");
}

ExplainedQuestion question_of(const v1::Job& job) {
  if (job.kind() != v1::Job::TUNE) {
    throw Error(ErrorCode::InvalidArgument, job.id(), "only compiled a cubin: name a job that tuned");
  }
  return {job.kernel(), problem_from_wire(job.problem(), "job.problem"),
          to_string(policy_from_wire(job.policy())), to_string(numerics_from_wire(job.numerics())),
          job.namespace_()};
}

ExplainedQuestion question_of(const std::string& kernel, const QuestionOptions& options) {
  Policy policy;
  policy.warm_l2 = options.warm_l2;
  policy.graph_launch = options.graph_launch;
  const v1::Numerics numerics = make_numerics(options.reproducible, options.invariant_dim);
  return {kernel, {}, to_string(policy), to_string(numerics_from_wire(numerics)), options.name_space};
}

StoredTrials stored_trials(const Connection& connection, const std::string& kernel, const std::string& device,
                           bool shipped, const CommonOptions& common) {
  v1::ExportTableRequest request;
  request.add_kernels(kernel);
  request.set_device(device);
  request.set_all_trials(true);
  request.set_include_samples(true);
  request.set_include_replayed(true);
  request.set_include_provisional(true);
  request.set_include_shipped(shipped);
  try {
    return exported(connection, request, common);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::ResourceExhausted) {
      throw;
    }
  }
  request.set_include_samples(false);
  return exported(connection, request, common);
}

}  // namespace cubind::ctl
