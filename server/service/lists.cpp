#include "server/service/lists.hpp"

#include <algorithm>
#include <functional>
#include <set>

#include "base/error.hpp"
#include "base/version.hpp"
#include "plan/answer_wire.hpp"
#include "server/answer/artifact_budget.hpp"
#include "server/convert/limits.hpp"
#include "server/convert/replies.hpp"
#include "server/defined_kernels.hpp"
#include "server/lookup/pinned_job.hpp"
#include "server/service/job_list.hpp"
#include "server/service/reply_cache.hpp"
#include "server/store/peers.hpp"
#include "server/store/store.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind {
namespace {

constexpr std::uint64_t kMostPinned = 100;
constexpr std::uint64_t kMostListedRecords = 10'000;  // read at once: about as many as a message holds

void fill(const DeviceClass& device, const RecordCount& records, v1::DeviceClass& wire) {
  wire.set_label(device.label);
  wire.set_digest(bytes_of(device.digest));
  *wire.mutable_facts() = device.facts;
  wire.set_records(records.all);
  wire.set_shipped_records(records.shipped);
}

void fill(const RecordRow& record, const IndexSnapshot& snapshot, v1::ListedRecord& wire) {
  const RecordQuestion& question = record.question;
  wire.set_kernel(question.kernel);
  to_wire(question.policy, *wire.mutable_policy());
  to_wire(question.numerics, *wire.mutable_numerics());
  wire.set_namespace_(question.name_space);
  to_wire(record.configuration, *wire.mutable_configuration());
  v1::Provenance& provenance = *wire.mutable_provenance();
  to_wire(record, provenance);
  provenance.clear_verification();
  provenance.mutable_generation()->set_number(record.from_generation);
  if (const DeviceClass* device = snapshot.device(question.device_class)) {
    provenance.set_measured_device(device->label);
  }
}

using IsAsked = std::function<bool(const RecordRow&)>;

std::vector<RecordPtr> current_after(const IndexSnapshot& snapshot, std::int64_t after,
                                     const IsAsked& is_asked) {
  std::vector<RecordPtr> records;
  snapshot.each([&](const RecordPtr& record) {
    if (record->id > after && is_asked(*record)) {
      records.push_back(record);
    }
  });
  std::ranges::sort(records, {}, &RecordRow::id);
  return records;
}

/// At least one if there is one.
std::vector<RecordPtr> replaced_after(Store& store, std::int64_t after, const std::string& kernel,
                                      const IsAsked& is_asked) {
  std::vector<RecordPtr> records;
  for (bool is_end = false; records.empty() && !is_end;) {
    std::vector<RecordRow> rows;
    store.read([&](StoreReader& reader) { rows = reader.replaced_after(after, kernel, kMostListedRecords); });
    is_end = rows.empty();
    for (RecordRow& row : rows) {
      after = row.id;
      if (is_asked(row)) {
        records.push_back(std::make_shared<RecordRow>(std::move(row)));
      }
    }
  }
  return records;
}

void add_kernels(ServiceContext& context, v1::GetStatusReply& reply) {
  for (const auto& entry : *context.kernels.kernels()) {
    reply.set_kernels(reply.kernels() + (entry->spec ? 1 : 0));
    if (!entry->error.empty()) {
      reply.add_kernel_errors(entry->error);
    }
  }
}

void add_peers(ServiceContext& context, v1::GetStatusReply& reply) {
  if (context.store.peers() == nullptr) {
    return;
  }
  for (const Peer& peer : context.store.peers()->alive()) {
    reply.add_peers(peer.name);
  }
  const auto lag =
      context.clock.steady_now() - context.scheduler.peers().taken_at().value_or(context.started_at);
  reply.set_store_lag_ms(std::max<std::uint64_t>(
      1, static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(lag).count())));
}

void add_agents(ServiceContext& context, v1::GetStatusReply& reply) {
  const auto agents = context.scheduler.agents().profiles();
  reply.set_agents(static_cast<std::uint32_t>(agents.size()));
  reply.set_agent_expected(agents.empty() && context.scheduler.agents().is_expected());
  std::set<std::string> toolchains;
  for (const AgentProfile& agent : agents) {
    if (agent.devices.empty() && !agent.no_device_because.empty()) {
      reply.add_no_device_because(agent.no_device_because);
    }
    for (const OfferedToolchain& toolchain : agent.toolchains) {
      toolchains.insert(toolchain.name);
      for (const std::string& lack : toolchain.sandbox_lacks) {
        reply.add_sandbox_lacks(agent.id + ", " + toolchain.name + ": " + lack +
                                (toolchain.takes_foreign ? " (--allow-partial-sandbox)" : ""));
      }
    }
  }
  reply.mutable_toolchains()->Add(toolchains.begin(), toolchains.end());
}

void to_wire(const Savings& saved, v1::Savings& wire) {
  wire.set_since(saved.since);
  wire.set_answers(saved.answers);
  wire.set_timed(saved.timed);
  wire.set_compile_ms(static_cast<double>(saved.compile_ms));
  wire.set_tuning_ms(static_cast<double>(saved.tuning_ms));
}

void add_pinned(ServiceContext& context, const Caller& caller, v1::GetStatusReply& reply) {
  std::vector<PinRow> pins;
  try {
    context.store.read([&](StoreReader& reader) { pins = reader.pins(kMostPinned); });
  } catch (const Error&) {  // the database is away, as the status says
    return;
  }
  for (const PinRow& pin : pins) {
    const PinnedJob job = PinnedJob::of_key(pin.job);
    if (covers(caller.namespaces, job.name_space)) {
      v1::PinnedJob& pinned = *reply.add_pinned();
      pinned.set_job(job.name);
      pinned.set_namespace_(job.name_space);
      pinned.set_generation(pin.generation);
      pinned.set_pinned_at(pin.created_at);
      pinned.set_processes(context.pins.processes(pin.job));
    }
  }
}

}  // namespace

void list_kernels(ServiceContext& context, const v1::ListKernelsRequest& request,
                  v1::ListKernelsReply& reply) {
  auto counts = context.index.snapshot()->counts_by_kernel();
  context.kernels.reload();
  for (const auto& entry : *context.kernels.kernels()) {
    const bool is_defined = context.defined.holds(entry->file);
    reply.set_defined(reply.defined() + (is_defined ? 1 : 0));
    if (is_defined != request.defined()) {
      continue;
    }
    v1::Kernel& kernel = *reply.add_kernels();
    to_wire(*entry, entry->spec ? counts[entry->name] : RecordCount(), kernel);
    if (is_defined) {  // thousands must fit into a message
      kernel.clear_arguments();
      kernel.clear_flags();
    }
  }
}

void list_devices(ServiceContext& context, google::protobuf::RepeatedPtrField<v1::DeviceClass>& devices) {
  const auto snapshot = context.index.snapshot();
  auto counts = snapshot->counts_by_device();
  std::set<Digest> offered;
  for (const AgentProfile& agent : context.scheduler.agents().profiles()) {
    for (const OfferedDevice& device : agent.devices) {
      offered.insert(device.device.digest);
      v1::DeviceClass& wire = *devices.Add();
      fill(device.device, counts[device.device.digest], wire);
      wire.set_offered(true);
      wire.set_agent(agent.id);
      wire.set_consent(device.consent);
      to_wire(device.driver, *wire.mutable_driver());
      wire.set_state(context.scheduler.leases().gpu_state(device.uuid));
      const v1::Conditions conditions = context.scheduler.outcomes().conditions_of(device.uuid);
      wire.set_temperature_c(conditions.temperature_c());
      wire.set_throttled(conditions.throttled());
    }
  }
  for (const auto& [digest, device] : snapshot->devices()) {
    if (!offered.contains(digest)) {
      fill(device, counts[digest], *devices.Add());
    }
  }
}

void cancel_job(ServiceContext& context, const OpenCall& open, const v1::CancelJobRequest& request,
                v1::CancelJobReply& reply) {
  find_job(context, open, request.id());
  to_wire(context.scheduler.cancel(request.id()), *reply.mutable_job());
}

void list_records(ServiceContext& context, const Caller& caller, const v1::ListRecordsRequest& request,
                  v1::ListRecordsReply& reply) {
  check_text(request.kernel(), "kernel");
  const auto is_asked = [&](const RecordRow& record) {
    const RecordQuestion& question = record.question;
    return covers(caller.namespaces, question.name_space) &&
           (request.kernel().empty() || question.kernel == request.kernel());
  };
  const auto snapshot = context.index.snapshot();
  const auto after = static_cast<std::int64_t>(request.after());
  std::size_t bytes = 0;
  for (const RecordPtr& record : request.superseded()
                                     ? replaced_after(context.store, after, request.kernel(), is_asked)
                                     : current_after(*snapshot, after, is_asked)) {
    v1::ListedRecord listed;
    fill(*record, *snapshot, listed);
    bytes += listed.ByteSizeLong();
    if (bytes > kMaxListBytes) {
      break;
    }
    *reply.add_records() = std::move(listed);
    reply.set_last(static_cast<std::uint64_t>(record->id));
  }
}

void get_status(ServiceContext& context, const Caller& caller, v1::GetStatusReply& reply) {
  const auto snapshot = context.index.snapshot();
  const StoreCounts counts = context.store.counts();
  reply.set_version(kVersion);
  to_wire(snapshot->generation(), *reply.mutable_generation());
  reply.set_uptime_ms(static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(context.clock.steady_now() - context.started_at)
          .count()));
  add_kernels(context, reply);
  const RecordCount records = snapshot->record_count();
  reply.set_records(records.all);
  reply.set_shipped_records(records.shipped);
  reply.set_artifacts(static_cast<std::uint32_t>(counts.artifacts));
  reply.set_jobs_queued(context.scheduler.queue().queued());
  reply.set_jobs_running(context.scheduler.queue().running());
  add_agents(context, reply);
  reply.set_store_bytes(counts.file_bytes);
  reply.set_cubin_bytes(counts.cubin_bytes);
  reply.set_cubin_limit_bytes(context.budget.max_bytes());
  reply.set_cubins_evicted(context.budget.evicted());
  reply.set_store_path(context.store.location());
  const auto reason = context.store.read_only_reason();
  reply.set_read_only(reason.has_value());
  reply.set_read_only_reason(reason.value_or(""));
  add_peers(context, reply);
  reply.set_damaged_rows(context.store.damaged_rows());
  list_devices(context, *reply.mutable_devices());
  reply.set_misses_wanted(counts.wants);
  reply.set_hits(context.hits + context.replies.found());
  reply.set_misses(context.misses);
  to_wire(context.saved.now(), *reply.mutable_saved());
  add_pinned(context, caller, reply);
}

}  // namespace cubind
