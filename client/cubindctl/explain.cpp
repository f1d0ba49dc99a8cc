// cubindctl explain: why the winner of a problem won, from its stored trials.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/text.hpp"
#include "client/connection.hpp"
#include "client/cubindctl/commands.hpp"
#include "client/cubindctl/explanation_output.hpp"
#include "client/cubindctl/json_output.hpp"
#include "client/cubindctl/terminal.hpp"
#include "client/request.hpp"
#include "tuner/plan/wire.hpp"
#include "tuner/spec/spec_folder.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind::ctl {
namespace {

struct Asked {
  ExplainedQuestion question;
  std::string device;  // label; empty: whichever has trials
};

Asked asked_of(const v1::Job& job) {
  if (job.kind() != v1::Job::TUNE) {
    throw Error(ErrorCode::InvalidArgument, job.id(), "only compiled a cubin: explain a job that tuned");
  }
  Asked asked;
  asked.question = {job.kernel(), problem_from_wire(job.problem(), "job.problem"),
                    to_string(policy_from_wire(job.policy())), to_string(numerics_from_wire(job.numerics())),
                    job.namespace_()};
  asked.device = job.device();
  return asked;
}

Asked asked_of(const ExplainOptions& options) {
  Asked asked;
  Policy policy;
  policy.warm_l2 = options.warm_l2;
  policy.graph_launch = options.graph_launch;
  const v1::Numerics numerics = make_numerics(options.reproducible, options.invariant_dim);
  asked.question = {options.subject, parse_problem(options.problem), to_string(policy),
                    to_string(numerics_from_wire(numerics)), options.name_space};
  asked.device = options.device;
  return asked;
}

// The daemon's own file where this machine has it, else the shipped kernel of that name.
std::shared_ptr<const KernelSpec> spec_of(const std::string& name, const v1::ListKernelsReply& known) {
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
                    "; a job's id goes without --problem");
  }
  if (const auto shipped = shipped_variants()) {
    const KnownSpecs specs = load_specs({*shipped});
    if (const auto found = specs.specs.find(name); found != specs.specs.end()) {
      return found->second;
    }
  }
  throw Error(ErrorCode::FailedPrecondition, name,
              "its spec lies on the daemon's machine: run explain there, or where the file is");
}

// The table has samples if they fit: only they show the differences between finalists.
Table trials_of(const Connection& connection, const Asked& asked, const CommonOptions& common,
                bool& has_samples) {
  v1::ExportTableRequest request;
  request.add_kernels(asked.question.kernel);
  request.set_device(asked.device);
  request.set_all_trials(true);
  request.set_include_samples(true);
  request.set_include_replayed(true);
  request.set_include_provisional(true);
  has_samples = true;
  try {
    return read_table(connection.export_table(request, common.deadline()).json(), "the daemon's table");
  } catch (const Error& error) {
    if (error.code() != ErrorCode::ResourceExhausted) {
      throw;
    }
  }
  has_samples = false;
  request.set_include_samples(false);
  return read_table(connection.export_table(request, common.deadline()).json(), "the daemon's table");
}

}  // namespace

ExitCode run(const ExplainOptions& options, const CommonOptions& common) {
  const Connection connection(resolve_address(common.address));
  Asked asked = options.problem.empty() ? asked_of(connection.get_job(options.subject, common.deadline()))
                                        : asked_of(options);
  const auto spec = spec_of(asked.question.kernel, connection.list_kernels(common.deadline()));
  asked.question.problem = spec->canonicalize(asked.question.problem, "problem");
  bool has_samples = true;
  const Table table = trials_of(connection, asked, common, has_samples);
  Explanation explanation = explain(table, *spec, asked.question);
  if (!has_samples) {
    explanation.remarks.emplace_back(
        "the differences between the finalists are left out: with all samples the kernel's trials exceed the "
        "size of a table");
  }
  if (common.json) {
    print_json(json_of(explanation, asked.question));
  } else {
    print(std::cout, explanation, asked.question, output_columns());
  }
  return ExitCode::Ok;
}

}  // namespace cubind::ctl
