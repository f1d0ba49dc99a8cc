#include "server/service/measured_records.hpp"

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "base/log.hpp"
#include "plan/wire.hpp"
#include "plan/wire_fields.hpp"
#include "server/convert/limits.hpp"
#include "server/store/store.hpp"
#include "tuner/spec/todays_terms.hpp"

namespace cubind {
namespace {

constexpr std::size_t kBest = 8;  // the winner among them

bool is_wanted(const RecordRow& record, const RecordWishes& wishes) {
  const RecordQuestion& question = record.question;
  return was_measured_here(record) && !record.provisional &&
         (wishes.kernel.empty() || question.kernel == wishes.kernel) &&
         (wishes.problems.empty() ||
          std::ranges::find(wishes.problems, question.problem) != wishes.problems.end()) &&
         (!wishes.device_class || question.device_class == *wishes.device_class);
}

std::vector<Configuration> best_of(const AnswerCandidate& candidate, const KernelSpec& spec, Store& store) {
  std::vector<Configuration> best{candidate.configuration};
  store.read([&](StoreReader& reader) {
    for (const Digest& trial : candidate.record->finalists) {
      const auto row =
          best.size() < kBest ? reader.trial(trial, candidate.record->question.kernel) : std::nullopt;
      const auto todays = row ? in_todays_terms(spec, row->configuration) : std::nullopt;
      if (todays && std::ranges::find(best, *todays) == best.end()) {
        best.push_back(*todays);
      }
    }
  });
  return best;
}

/// Absent: another record answers the question, or one that need not or cannot be measured again.
std::optional<MeasuredRecord> measured_record(ServiceContext& context, const RecordRow& record,
                                              const OfferedDevice& device, const RecordWishes& wishes) {
  MeasuredRecord found;
  found.question = context.questions.read(record.question, device.device);
  const ToolchainNeed need = kernel_need(found.question);
  if (!no_compiler_because(*context.fleet.agents(), device.device.digest, need).empty()) {
    return std::nullopt;  // a job would wait for such an agent, and idle time with it
  }
  const auto candidates = context.answerer.candidates(found.question, *context.index.snapshot());
  const RecordPtr front = candidates.empty() ? nullptr : candidates.front().record;
  if (!front || front->question.problem != found.question.key.problem || !is_wanted(*front, wishes)) {
    return std::nullopt;
  }
  found.record = front;
  found.stale = candidates.front().match.has(Departure::Stale);
  if (!found.stale && !wishes.all) {
    return std::nullopt;
  }
  found.best = best_of(candidates.front(), *found.question.spec, context.store);
  return found;
}

void refuse_what_records_have(const v1::TuneRequest& request) {
  const auto refuse = [](bool given, const char* field, const char* why) {
    if (given) {
      throw Error(ErrorCode::InvalidArgument, field, std::string("stays empty with `verify`: ") + why);
    }
  };
  const char* own = "each record has its own";
  refuse(request.has_wanted(), "wanted", "what is wanted has no record");
  refuse(
      request.policy().warm_l2() || request.policy().graph_launch() || request.policy().flush_method() != 0,
      "policy", own);
  refuse(request.numerics().kind() != v1::Numerics::TOLERANCE, "numerics", own);
  refuse(!request.namespace_().empty(), "namespace", own);
  refuse(request.max_trials() > 0 || request.max_seconds() > 0, "max_trials", "nothing is searched");
  refuse(request.from_scratch() || request.listed_size() > 0,
         request.from_scratch() ? "from_scratch" : "listed", "what is measured is the record's best");
  if (request.kernel().empty() && request.problems_size() > 0) {
    throw Error(ErrorCode::InvalidArgument, "kernel", "is missing: `problems` are of one kernel");
  }
}

}  // namespace

RecordWishes record_wishes_of(ServiceContext& context, const v1::TuneRequest& request) {
  refuse_what_records_have(request);
  check_text(request.kernel(), "kernel");
  check_count(request.problems_size(), kMaxProblems, "problems");
  RecordWishes wishes;
  wishes.kernel = request.kernel();
  wishes.all = request.verify().all();
  if (request.has_device()) {
    wishes.device_class = context.questions.device(request.device(), "device").digest;
  }
  const auto kernel = wishes.kernel.empty() ? nullptr : context.kernels.find(wishes.kernel);
  for (int i = 0; i < request.problems_size(); ++i) {
    const std::string field = element("problems", i);
    wishes.problems.push_back(
        kernel->spec->canonicalize(problem_from_wire(request.problems(i), field), field));
  }
  return wishes;
}

std::vector<MeasuredRecord> measured_records(ServiceContext& context, const RecordWishes& wishes) {
  std::vector<MeasuredRecord> found;
  std::set<Digest> seen;
  for (const RecordPtr& record : context.index.snapshot()->all()) {
    const auto device = offered_device(*context.fleet.agents(), record->question.device_class);
    RecordQuestion question = record->question;
    question.policy = as_measured_today(question.policy);
    if (!is_wanted(*record, wishes) || !device || !may_measure(*device) ||
        !seen.insert(record_key(question).digest).second) {
      continue;
    }
    try {
      if (auto one = measured_record(context, *record, *device, wishes)) {
        found.push_back(*std::move(one));
      }
    } catch (const Error& error) {
      // Its kernel has gone or has another interface.
      log_debug("a record is not measured again: " + std::string(error.what()));
    }
  }
  return found;
}

}  // namespace cubind
