#include "server/service/table_call.hpp"

#include "plan/wire_fields.hpp"
#include "server/convert/limits.hpp"
#include "server/convert/replies.hpp"
#include "server/service/status.hpp"
#include "server/store/store.hpp"
#include "server/table/table_export.hpp"
#include "tuner/table/table_check.hpp"

namespace cubind {

namespace {

/// A table may keep records of a kernel's earlier interfaces next to today's. If it has none of today's, it
/// is of another kernel, or of one that has to be tuned again.
void refuse_other_interface(const Table& table, const std::string& file, const KernelEntry& kernel) {
  std::size_t records = 0, first = 0;
  for (std::size_t i = 0; i < table.records.size(); ++i) {
    if (table.records[i].context.kernel != kernel.name) {
      continue;
    }
    if (table.records[i].interface == kernel.interface) {
      return;
    }
    first = records++ == 0 ? i : first;
  }
  if (records > 0) {
    throw Error(ErrorCode::FailedPrecondition, file + " /records/" + std::to_string(first) + "/interface",
                other_interface(records, kernel.name, kernel.spec->file) + "; nothing was imported");
  }
}

}  // namespace

ImportReport take_table(ServiceContext& context, const Table& table, const std::string& file,
                        const ImportOptions& options, const Interrupt& interrupt) {
  ImportReport report;
  context.store.write(
      [&](StoreWriter& writer) { report = import_table(writer, table, file, options, interrupt); });
  context.jobs.run([&] { context.index.load(context.store); });
  if (context.prebuild) {
    context.prebuild();
  }
  return report;
}

void require_table_namespace(const OpenCall& open, const std::string& name_space) {
  if (name_space.empty()) {
    open.require_all_namespaces("name one of them (--namespace)");
  } else {
    open.require_namespace(name_space);
  }
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* ExportCall::start(ServiceContext& context, OpenCallPtr open,
                                                              grpc::CallbackServerContext& call,
                                                              v1::ExportTableRequest request) {
  const std::shared_ptr<ExportCall> self(new ExportCall(context, std::move(open), call));
  self->self_ = self;
  context.background.post(self->open_->sharer(), [self, request = std::move(request)] {
    const grpc::Status status = guarded([&] { self->print(request); });
    if (status.ok()) {
      self->begin_to_write();
    } else {
      self->finish(status);
    }
  });
  return self.get();
}

void ExportCall::print(const v1::ExportTableRequest& request) {
  refuse_to_go_on(context_, cancelled_);
  ExportOptions options;
  const auto counts = context_.index.snapshot()->counts_by_kernel();
  for (int i = 0; i < request.kernels_size(); ++i) {
    const std::string field = element("kernels", i);
    check_name(request.kernels(i), field);
    // A kernel that is gone from the specs may still have records; a name that nothing knows is a slip.
    if (!counts.contains(request.kernels(i))) {
      context_.kernels.find(request.kernels(i));
    }
    options.kernels.push_back(request.kernels(i));
  }
  if (!request.device().empty()) {
    options.device_class =
        resolve_label(request.device(), *context_.fleet.agents(), *context_.index.snapshot(), "device")
            .digest;
  }
  if (!request.namespace_().empty()) {
    options.name_space = request.namespace_();
  }
  options.all_trials = request.all_trials();
  options.samples = request.include_samples();
  options.replayed = request.include_replayed();
  options.provisional = request.include_provisional();
  options.shipped = request.include_shipped();
  ExportedTable exported;
  context_.store.read([&](StoreReader& reader) { exported = export_table(reader, options); });
  refuse_to_go_on(context_, cancelled_);
  chunk_.set_replayed_left_out(exported.replayed_left_out);
  chunk_.set_provisional_left_out(exported.provisional_left_out);
  chunk_.set_shipped_left_out(exported.shipped_left_out);
  chunk_.set_damaged_left_out(exported.damaged_left_out);
  text_ = print_table(std::move(exported.table));
  if (text_.size() > kMaxTableBytes) {
    throw Error(ErrorCode::ResourceExhausted, "table",
                "has " + std::to_string(text_.size()) + " bytes, more than the " +
                    std::to_string(kMaxTableBytes) +
                    " that can be imported again: export it by kernels or devices, or without samples");
  }
  open_->hold_bytes(text_.size());
}

void ExportCall::begin_to_write() {
  idle_end_ = IdleEnd::start(context_, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) {
      self->end_idle();
    }
  });
  write_next();
}

void ExportCall::write_next() {
  chunk_.set_json(text_.substr(sent_, kChunkBytes));
  sent_ += chunk_.json().size();
  bytes_ = print_message(chunk_);
  StartWrite(&bytes_);
}

void ExportCall::end_idle() {
  if (!ended_.exchange(true)) {
    log_warning("an export was ended: " + open_->name() + " did not read it for " +
                std::to_string(context_.longest_pause.count()) + " ms");
    call_.TryCancel();
    Finish({grpc::StatusCode::CANCELLED, "the caller did not read"});
  }
}

void ExportCall::finish(const grpc::Status& status) {
  if (!ended_.exchange(true)) {
    Finish(open_->ends_with(status));
  }
}

void ExportCall::OnWriteDone(bool ok) {
  if (ended_) {
    return;
  }
  idle_end_->went_on();
  if (!ok) {
    finish({grpc::StatusCode::CANCELLED, "the caller went away"});
  } else if (sent_ >= text_.size()) {
    finish(grpc::Status::OK);
  } else {
    chunk_.Clear();  // what the first one told
    write_next();
  }
}

void ImportCall::take(const v1::TableChunk& chunk) {
  if (std::exchange(first_, false)) {
    check_text(chunk.file(), "file", 4096);
    check_text(chunk.namespace_(), "namespace");
    file_ = chunk.file().empty() ? file_ : chunk.file();
    options_ = {.name_space = chunk.namespace_(), .only_new = chunk.only_new()};
    open_->set_namespace(options_.name_space);
    require_table_namespace(*open_, options_.name_space);
    open_->note_admitted();
    text_.reserve(kMaxTableBytes);  // of addresses: a table that grows is not copied
  }
  if (text_.size() + chunk.json().size() > kMaxTableBytes) {
    throw Error(ErrorCode::ResourceExhausted, file_,
                "is longer than the limit of " + std::to_string(kMaxTableBytes) + " bytes");
  }
  text_ += chunk.json();
}

void ImportCall::work(v1::ImportTableReply& reply) {
  refuse_to_go_on(context_, cancelled_);
  const Interrupt interrupt = [this] { refuse_to_go_on(context_, cancelled_); };
  const Table table = read_table(text_, file_, interrupt);
  if (!table.trials.empty()) {
    open_->require_all_namespaces("leave out `trials` of the table: all namespaces share them");
  }
  for (const auto& kernel : *context_.kernels.kernels()) {
    if (kernel->spec) {
      refuse_other_interface(table, file_, *kernel);
    }
  }
  const ImportReport report = take_table(context_, table, file_, options_, interrupt);
  reply.set_records_added(report.records_added);
  reply.set_records_known(report.records_known);
  reply.set_trials_added(report.trials_added);
  to_wire(context_.index.snapshot()->generation(), *reply.mutable_generation());
}

}  // namespace cubind
