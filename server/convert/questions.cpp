#include "server/convert/questions.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"
#include "plan/answer_wire.hpp"
#include "plan/wire_fields.hpp"
#include "server/convert/lent_gpu.hpp"
#include "server/convert/limits.hpp"
#include "server/convert/problem_check.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind {
namespace {

Numerics numerics_of(const KernelSpec& spec, const v1::Numerics& wire) {
  Numerics numerics = numerics_from_wire(wire, "numerics");
  const std::string& dim = numerics.invariant_dim;
  if (dim.empty() || !spec.outputs_along(dim).empty()) {
    return numerics;
  }
  std::string dims;
  for (const DimSpec& one : spec.dims) {
    if (!spec.outputs_along(one.name).empty()) {
      dims += (dims.empty() ? "" : ", ") + one.name;
    }
  }
  throw Error(ErrorCode::InvalidArgument, "numerics.invariant_dim",
              quoted(dim) + " is not a dim of " + spec.name + " along which an output has rows (" +
                  (dims.empty() ? "there is none" : "there is " + dims) + ")");
}

std::optional<DriverVersion> driver_from_wire(const v1::Device& device) {
  if (!device.has_driver() || (device.driver().cuda() == 0 && device.driver().version().empty())) {
    return std::nullopt;
  }
  return DriverVersion{device.driver().cuda(), device.driver().version()};
}

std::vector<Digest> digests_from_wire(const google::protobuf::RepeatedPtrField<std::string>& wire,
                                      const std::string& field) {
  check_count(wire.size(), kMaxHaveArtifacts, field);
  std::vector<Digest> digests;
  for (int i = 0; i < wire.size(); ++i) {
    digests.push_back(digest_from_wire(wire[i], element(field, i)));
  }
  return digests;
}

/// Longer than any caller's deadline, which ends the wait.
constexpr std::chrono::hours kUntilTheDeadline{24};

void read_waits(const v1::GetVariantRequest& request, VariantQuestion& read) {
  if (!request.has_compile_wait_ms()) {
    if (request.on_miss() == v1::WAIT) {
      read.compile_wait = read.longest_wait = kUntilTheDeadline;
    }
    return;
  }
  if (request.compile_wait_ms() > kMaxCompileWaitMs) {
    throw Error(ErrorCode::InvalidArgument, "compile_wait_ms",
                std::to_string(request.compile_wait_ms()) + " is above the limit of " +
                    std::to_string(kMaxCompileWaitMs));
  }
  read.compile_wait = read.longest_wait = std::chrono::milliseconds(request.compile_wait_ms());
}

void read_tune_mode(const v1::GetVariantRequest& request, VariantQuestion& read) {
  if (!v1::TuneMode_IsValid(request.tune())) {
    throw Error(ErrorCode::InvalidArgument, "tune",
                std::to_string(request.tune()) + " is not one of AUTO, NEVER, SEALED");
  }
  read.may_tune = request.tune() == v1::AUTO;
  read.is_sealed = request.tune() == v1::SEALED;
  read.with_plan = request.with_plan();
}

void read_lock(const v1::GetVariantRequest& request, VariantQuestion& read) {
  if (!request.has_locked()) {
    return;
  }
  read.locked = Generation{request.locked().store_id(), request.locked().number()};
  if (read.job.empty()) {
    read.job = "generation " + std::to_string(read.locked->number);  // a pin has a name
  }
  read.question.is_locked = true;
  read.may_tune = false;
}

}  // namespace

SearchBudget budget_of(const v1::TuneRequest& request) {
  if (request.max_trials() > kMostTrials) {
    throw Error(
        ErrorCode::InvalidArgument, "max_trials",
        std::to_string(request.max_trials()) + " is above the limit of " + std::to_string(kMostTrials));
  }
  if (!(request.max_seconds() >= 0 && request.max_seconds() <= kMostSeconds)) {
    throw Error(ErrorCode::InvalidArgument, "max_seconds",
                std::to_string(request.max_seconds()) + " is not between 0 and a week");
  }
  return {request.max_trials(), request.max_seconds()};
}

std::vector<Configuration> listed_of(const v1::TuneRequest& request, const KernelSpec& spec) {
  const auto refuse = [](bool given, const char* field, const std::string& cause) {
    if (given) {
      throw Error(ErrorCode::InvalidArgument, field, cause);
    }
  };
  check_count(request.listed_size(), kMaxListed, "listed");
  refuse(request.listed_size() > 0 && (request.problems_size() != 1 || request.from_scratch()), "listed",
         "goes with one problem, and without `from_scratch`");
  refuse(request.rounds() > 0 && request.listed_size() == 0, "rounds", "goes with `listed`");
  refuse(request.rounds() > kMaxRounds, "rounds",
         std::to_string(request.rounds()) + " is above the limit of " + std::to_string(kMaxRounds));
  refuse(request.from_scratch() && request.has_wanted(), "from_scratch", "does not go with `wanted`");
  std::vector<Configuration> listed;
  for (int i = 0; i < request.listed_size(); ++i) {
    const std::string field = element("listed", i);
    listed.push_back(spec.canonicalize(configuration_from_wire(request.listed(i), field), field));
  }
  return listed;
}

VariantQuestion QuestionReader::read(const v1::GetVariantRequest& request) const {
  check_name(request.kernel(), "kernel");
  check_text(request.job(), "job");
  Common common;
  common.kernel = kernels_.find(request.kernel());
  common.device = device(request.device(), "device");
  common.driver = driver_from_wire(request.device());
  common.gpu = request.device().facts();
  common.policy = policy_from_wire(request.policy(), "policy");
  common.numerics = numerics_of(*common.kernel->spec, request.numerics());
  check_text(request.namespace_(), "namespace");
  common.name_space = request.namespace_();

  VariantQuestion read;
  read.question = question(common, request.problem(), "problem");
  if (request.restrict_accept()) {
    read.accepted = match_from_wire(request.accept(), "accept");
  } else if (request.accept_size() > 0) {
    throw Error(ErrorCode::InvalidArgument, "accept",
                "is given without restrict_accept, which makes it count");
  }
  read.names_device = request.device().has_label();
  read.job = request.job();
  read.on_miss = on_miss_from_wire(request.on_miss(), "on_miss");
  if (request.has_lent() && read.on_miss == OnMiss::Wait) {
    read.lent = lent_gpu_from_wire(request.lent());
  }
  read_tune_mode(request, read);
  read_lock(request, read);
  read_waits(request, read);
  read.have = digests_from_wire(request.have_artifacts(), "have_artifacts");
  return read;
}

std::vector<Question> QuestionReader::read(const v1::TuneRequest& request) const {
  check_name(request.kernel(), "kernel");
  check_text(request.namespace_(), "namespace");
  if (request.problems().empty()) {
    throw Error(ErrorCode::InvalidArgument, "problems", "is empty: give at least one problem");
  }
  check_count(request.problems_size(), kMaxProblems, "problems");
  Common common;
  common.kernel = kernels_.find(request.kernel());
  if (common.kernel->spec->is_compiled_only()) {
    throw Error(ErrorCode::FailedPrecondition, "kernel " + request.kernel(),
                "has one configuration: it is compiled and served, and there is nothing to tune");
  }
  common.device = request.has_device() ? device(request.device(), "device")
                                       : only_offered_device(*fleet_.agents(), "device");
  ask_as_measured(common);
  common.policy = policy_from_wire(request.policy(), "policy");
  common.numerics = numerics_of(*common.kernel->spec, request.numerics());
  common.name_space = request.namespace_();
  std::vector<Question> questions;
  for (int i = 0; i < request.problems_size(); ++i) {
    questions.push_back(question(common, request.problems(i), element("problems", i)));
  }
  return questions;
}

Question QuestionReader::read(const RecordQuestion& stored, const DeviceClass& device) const {
  Common common;
  common.kernel = kernels_.find(stored.kernel);
  if (common.kernel->interface != stored.interface) {
    throw Error(ErrorCode::FailedPrecondition, "kernel " + stored.kernel,
                "its interface has changed since this was asked");
  }
  common.device = device;
  ask_as_measured(common);
  common.policy = as_measured_today(stored.policy);
  common.numerics = stored.numerics;
  common.name_space = stored.name_space;
  v1::Problem problem;
  to_wire(stored.problem, problem);
  return question(common, problem, "problem");
}

// A new measurement has the driver and the power limit of the agent's GPU.
void QuestionReader::ask_as_measured(Common& common) const {
  if (const auto offered = offered_device(*fleet_.agents(), common.device.digest)) {
    common.driver = offered->driver;
    common.gpu = offered->device.facts;
  }
}

DeviceClass QuestionReader::device(const v1::Device& device, const std::string& field) const {
  check_device(device, field);
  if (device.has_facts()) {
    return derive_device_class(device.facts(), field + ".facts");
  }
  return resolve_label(device.label(), *fleet_.agents(), *index_.snapshot(), field + ".label");
}

Question QuestionReader::question(const Common& common, const v1::Problem& problem,
                                  const std::string& field) const {
  check_problem(problem, field);
  check_problem_of(*common.kernel->spec, problem, field);
  check_architecture_of(*common.kernel->spec, architecture(common.device.facts, false), "device");
  Question question;
  question.spec = common.kernel->spec;
  question.spec_revision = common.kernel->revision;
  question.is_foreign = defined_.is_foreign(common.kernel->name);
  question.verification = common.numerics.kind == Numerics::Kind::Invariant
                              ? verification_digest(*common.kernel->spec, common.numerics)
                              : common.kernel->verification;
  question.device = common.device;
  question.driver = common.driver;
  question.gpu = common.gpu;
  question.toolchain = toolchain_of_today(*fleet_.agents(), toolchain_need(question));
  question.key.kernel = common.kernel->name;
  question.key.interface = common.kernel->interface;
  question.key.problem = common.kernel->spec->canonicalize(problem_from_wire(problem, field), field);
  question.key.device_class = common.device.digest;
  question.key.policy = common.policy;
  question.key.numerics = common.numerics;
  question.key.name_space = common.name_space;
  return question;
}

}  // namespace cubind
