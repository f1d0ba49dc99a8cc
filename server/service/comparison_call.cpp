#include "server/service/comparison_call.hpp"

#include "base/error.hpp"
#include "plan/answer_wire.hpp"
#include "plan/facts/library_comparison.hpp"
#include "server/store/store.hpp"

namespace cubind {
namespace {

[[noreturn]] void refuse_answer(const Question& question, const std::string& cause) {
  throw Error(ErrorCode::FailedPrecondition,
              "kernel " + question.key.kernel + " at " + to_string(question.key.problem), cause);
}

/// The record that the compared cubin comes from.
RecordPtr compared_record(ServiceContext& context, const VariantQuestion& asked, const Digest& artifact) {
  const Resolution resolution =
      context.answerer.resolve(asked.question, *context.index.snapshot(), asked.accepted, {});
  const auto& answer = resolution.answer;
  if (!answer || !answer->candidate.record || !is_of_bucket(answer->candidate)) {
    refuse_answer(asked.question, "no record of its bucket answers: tune it before it is compared");
  }
  if (answer->artifact.cubin != artifact) {
    refuse_answer(asked.question, "another cubin answers than the one that was compared: compare that one");
  }
  return answer->candidate.record;
}

}  // namespace

void report_comparison(ServiceContext& context, const v1::ReportComparisonRequest& request) {
  refuse_while_draining(context);
  check_comparison(request.comparison(), "comparison");
  const Digest artifact = digest_from_wire(request.artifact(), "artifact");
  const VariantQuestion asked = context.questions.read(request.question());
  const RecordPtr record = compared_record(context, asked, artifact);
  bool kept = false;
  context.store.write(
      [&](StoreWriter& writer) { kept = writer.put_comparison(record->id, request.comparison()); });
  if (!kept) {
    refuse_answer(asked.question, "another record has replaced the one that was compared");
  }
  context.index.refresh(context.store, record->question);  // kept replies are of the index before
}

}  // namespace cubind
