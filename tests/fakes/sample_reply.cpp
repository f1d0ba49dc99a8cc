#include "tests/fakes/sample_reply.hpp"

#include "base/digest.hpp"
#include "base/zstd.hpp"
#include "plan/wire.hpp"

namespace cubind::test {
namespace {

const DeviceConstants kH200{132, 232448, 60 << 20, 90};

ParameterTemplate buffer(std::string name, DType type, Role role, std::string extent) {
  return {std::move(name), ParameterSource::Buffer, type, role, std::move(extent), 16, ""};
}

ParameterTemplate value(std::string name, DType type, std::string expression) {
  return {std::move(name), ParameterSource::Value, type, Role::None, "", 0, std::move(expression)};
}

void fill_provenance(v1::GetVariantReply& reply) {
  v1::Provenance& provenance = *reply.mutable_provenance();
  provenance.set_evidence(v1::MEASURED);
  provenance.mutable_generation()->set_store_id(std::string(16, '\x0a'));
  provenance.mutable_generation()->set_number(7);
  *provenance.mutable_measured_problem() = reply.problem();
  provenance.set_measured_device("nvidia-h200");
  provenance.set_measured_device_class(Digest::of("h200").view().data(), 32);
  provenance.mutable_driver()->set_cuda(13000);
  provenance.mutable_driver()->set_version("580.159.04");
  provenance.set_toolchain("nvrtc 13.0");
  provenance.mutable_timing()->set_measured_at("2026-01-31T09:15:00.000Z");
  provenance.mutable_timing()->set_median_us(24.1);
  provenance.mutable_timing()->set_low_us(24.0);
  provenance.mutable_timing()->set_high_us(24.25);
  provenance.mutable_timing()->set_samples(30);
  provenance.mutable_timing()->set_sm_mhz(1980);
  provenance.mutable_timing()->set_gain_over_default(1.18);
  provenance.set_same_bytes_measured(true);
  provenance.mutable_timing()->set_timer("cupti");
  provenance.mutable_timing()->set_tick_us(0.032);
  provenance.mutable_verification()->set_verified(true);
  provenance.mutable_verification()->set_reference("kernel");
  provenance.mutable_verification()->set_worst_excess(0.4);
  *provenance.mutable_verification()->add_problems() = reply.problem();
}

void fill_artifact(const std::string& cubin, v1::ArtifactInfo& artifact) {
  artifact.set_digest(std::string(Digest::of(cubin).view()));
  artifact.set_architecture("sm_90");
  artifact.set_cubin_bytes(cubin.size());
  artifact.set_zstd_cubin(zstd_compress(cubin));
  artifact.set_toolchain("nvrtc 13.0");
  v1::EntryResources& entry = *artifact.add_entries();
  entry.set_entry_symbol("_Z10scale_rows");
  entry.set_registers(32);
}

}  // namespace

PlanTemplate sample_template() {
  LaunchTemplate rows;
  rows.entry = "scale_rows<__half, 256, 4>";
  rows.entry_symbol = "_Z10scale_rows";
  rows.grid = {"cdiv(N * D, THREADS * VECTOR)"};
  rows.block = {"THREADS"};
  rows.parameters = {buffer("x", DType::F16, Role::In, "N*D"),
                     buffer("y", DType::F16, Role::Out, "N*D"),
                     value("N", DType::I64, "N"),
                     {"alpha", ParameterSource::Caller, DType::F32, Role::None, "", 0, ""}};
  LaunchTemplate finish;
  finish.entry = "finish<256>";
  finish.entry_symbol = "_Z6finish";
  finish.grid = {"N", "2"};
  finish.block = {"THREADS"};
  finish.shared_bytes = "D * 4";
  finish.parameters = {buffer("y", DType::F16, Role::Out, "N*D"),
                       buffer("partial", DType::F32, Role::Scratch, "N"), value("D", DType::I32, "D")};
  PlanTemplate plan;
  plan.constraints = {"D % VECTOR == 0", "N != 300"};
  plan.launches = {rows, finish};
  return plan;
}

Configuration sample_configuration() { return {{{"THREADS", 256}, {"VECTOR", 4}}}; }

Query query(const std::string& problem) {
  Query result;
  result.kernel = "scale";
  result.problem = parse_problem(problem);
  result.device = DeviceLabel{"nvidia-h200"};
  return result;
}

v1::GetVariantReply sample_reply(const Problem& problem, const std::string& cubin) {
  v1::GetVariantReply reply;
  reply.set_kernel("scale");
  to_wire(problem, *reply.mutable_problem());
  to_wire(sample_configuration(), *reply.mutable_configuration());
  to_wire(sample_template(), kH200, *reply.mutable_rule());
  v1::Interval& interval = *reply.mutable_rule()->add_intervals();
  interval.set_dim("N");
  interval.set_lower(257);
  interval.set_upper(1024);
  Problem own = problem;
  own.dims.front().value = 512;
  to_wire(own, *reply.mutable_rule()->add_own_records());
  fill_artifact(cubin, *reply.mutable_artifact());
  fill_provenance(reply);
  reply.set_device("nvidia-h200");
  reply.set_device_class(Digest::of("h200").view().data(), 32);
  return reply;
}

}  // namespace cubind::test
