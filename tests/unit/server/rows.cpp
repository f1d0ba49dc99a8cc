#include "tests/unit/server/rows.hpp"
#include "tests/support/facts.hpp"

#include "base/zstd.hpp"
#include "tests/support/example_facts.hpp"

namespace cubind::test {

DeviceFacts h200() { return example_facts(); }

DeviceClass h200_class() { return derive_device_class(h200(), "facts"); }

ToolchainIdentity toolchain(const std::string& name) {
  return {name, Digest::of(name + " nvrtc"), Digest::of(name + " builtins"), Digest::of("headers")};
}

Problem problem_of(std::int64_t n) { return {{{"N", n}}, {{"T", DType::F32}}, {}, ""}; }

RecordQuestion question_of(std::int64_t n) {
  RecordQuestion question;
  question.kernel = "vector_add";
  question.interface = Digest::of("interface");
  question.problem = problem_of(n);
  question.device_class = h200_class().digest;
  return question;
}

Key key_of(const std::string& text) { return {Digest::of(text), text}; }

ArtifactRow artifact_row(const std::string& name, const std::string& cubin) {
  ArtifactRow row;
  row.key = key_of("artifact " + name);
  row.cubin = Digest::of(cubin);
  row.kernel = "vector_add";
  row.architecture = "sm_90";
  row.cubin_bytes = cubin.size();
  row.entries = {"vector_add<float, 256>"};
  row.entry_symbols = {"_Z10vector_add"};
  row.resources = {resources_of("_Z10vector_add", 32)};
  row.toolchain = toolchain();
  row.compile_ms = 12.5;
  return row;
}

Blob blob_of(const std::string& cubin) { return {Digest::of(cubin), cubin.size(), zstd_compress(cubin)}; }

TrialRow trial_row(const std::string& name, std::int64_t n) {
  TrialRow row;
  row.key = key_of("trial " + name);
  row.kernel = "vector_add";
  row.problem = problem_of(n);
  row.configuration = {{{"THREADS", 256}, {"VECTOR", 4}}};
  row.device_class = h200_class().digest;
  row.driver = {13000, "580.159.04"};
  row.toolchain = toolchain();
  row.job_id = "job";
  return row;
}

BlockRow block_row(const TrialRow& trial, unsigned index) {
  BlockRow row;
  row.set_imported(trial.origin == Origin::Import);
  row.set_series(trial.series);
  row.set_job("job");
  SampleBlock& block = *row.mutable_block() = block_of({20.0, 20.1 + index, 19.9});
  block.set_trial_key(bytes_of(trial.key.digest));
  block.set_stage(v1::SampleBlock::FINAL);
  block.set_index(index);
  block.set_timer("cupti");
  block.set_tick_us(0.032);
  return row;
}

RecordRow record_row(std::int64_t n, double median_us) {
  RecordRow row;
  row.question = question_of(n);
  row.configuration = {{{"THREADS", 256}, {"VECTOR", 4}}};
  row.trial = Digest::of("trial");
  row.cubin = Digest::of("cubin");
  row.architecture = "sm_90";
  row.toolchain = toolchain();
  row.driver = {13000, "580.159.04"};
  row.evidence = Evidence::Measured;
  row.timing.set_median_us(median_us);
  row.timing.set_samples(12);
  row.timing.set_measured_at("2026-11-21T12:00:00Z");
  row.verification.set_verified(true);
  set_problems(std::vector{problem_of(n), problem_of(n + 1)}, row.verification);
  row.finalists = {Digest::of("trial")};
  return row;
}

}  // namespace cubind::test
