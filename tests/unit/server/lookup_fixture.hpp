// Questions to the index, with the records that answer them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "server/lookup/lookup.hpp"
#include "tests/support/paths.hpp"
#include "tests/unit/server/rows.hpp"

namespace cubind::test {

inline std::shared_ptr<const KernelSpec> spec_with(const std::string& name) {
  return load_kernel_spec((source_dir() / "variants" / name).string());
}

/// Questions about vector_add on an H200 and records that answer them, without a store but through one: the
/// index reads it.
struct LookupFixture {
  TempDir folder;
  std::unique_ptr<Store> store = Store::open({folder.path() / "store.db"});
  std::shared_ptr<const KernelSpec> spec = spec_with("vector_add/vector_add.json");
  Index index;

  Question ask(std::int64_t n, const DeviceClass& device = h200_class()) const {
    Question question;
    question.spec = spec;
    question.verification = verification_digest(*spec);
    question.key = question_of(n);
    question.key.interface = interface_digest(*spec);
    question.key.device_class = device.digest;
    question.device = device;
    return question;
  }

  /// A record of today's spec: its trial key is the one that is recomputed.
  RecordRow record(std::int64_t n, const DeviceClass& device = h200_class(),
                   const Configuration& configuration = {},
                   const std::string& compiler = "nvrtc 13.0") const {
    RecordRow row = record_row(n);
    row.toolchain = toolchain(compiler);
    row.question = ask(n, device).key;
    row.architecture = architecture(device.facts, false);
    row.configuration = configuration;
    if (configuration.values.empty()) {
      row.configuration = spec->defaults.front();
    }
    const Problem& problem = row.question.problem;
    const PlanEvaluator plan(spec->plan_template(problem, row.configuration), problem, row.configuration,
                             device_constants(device.facts));
    const Key artifact =
        artifact_key(artifact_source(*spec, problem, row.configuration, row.architecture), row.toolchain);
    const auto result = plan.evaluate(problem, row.configuration);
    if (result.plan) {
      row.trial = trial_key({spec.get(), problem, device.digest, {}, "580"}, artifact, *result.plan).digest;
    }
    row.verification.set_digest(bytes_of(verification_digest(*spec)));
    return row;
  }

  void add(const std::vector<RecordRow>& rows, const std::vector<DeviceClass>& devices = {h200_class()}) {
    store->write([&](StoreWriter& writer) {
      for (const DeviceClass& device : devices) {
        writer.put_device_class(device);
      }
      for (const RecordRow& row : rows) {
        writer.put_record(row);
      }
    });
    index.load(*store);
  }

  std::vector<AnswerCandidate> rank(const Question& question) const {
    const CarryOver carry = [&](const RecordRow& row, const DeviceFacts& facts) {
      return carry_over(*question.spec, row, facts);
    };
    return rank_candidates(question, *index.snapshot(), carry);
  }
  AnswerCandidate best(const Question& question) const { return rank(question).at(0); }
};

}  // namespace cubind::test
