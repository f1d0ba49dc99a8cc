#include "server/service/define_call.hpp"

#include "base/error.hpp"
#include "base/text.hpp"
#include "plan/facts/value_check.hpp"
#include "server/defined_kernels.hpp"
#include "tuner/spec/npy.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind {
namespace {

constexpr std::uint64_t kMaxReceived = std::uint64_t{64} << 20;
constexpr std::size_t kMaxPathBytes =
    200;  // file systems allow 255 in a name, which grows while it is written
constexpr const char* kFile = "DefineKernel";  // for messages

// Data that do not fit their buffer would end every job for the kernel.
void check_data(const KernelSpec& spec) {
  for (const ArgumentSpec& argument : spec.arguments) {
    if (argument.fill.kind == Fill::Kind::File) {
      spec.file_data(argument, {});
    }
  }
}

// In the definition's folder another spec would be read too.
void check_files(const KernelSpec& spec) {
  if (spec.name == "tables") {
    throw Error(ErrorCode::InvalidArgument, std::string(kFile) + " /name",
                "a folder of this name has tables, and no kernel: choose another");
  }
  if (!spec.headers.empty()) {
    throw Error(ErrorCode::InvalidArgument, std::string(kFile) + " /headers",
                "a kernel that is defined by a call has no other folders: send the files with it");
  }
  for (const SourceFile& file : spec.bundle.files) {
    check_text(file.path, std::string(kFile) + " file", kMaxPathBytes);
    if (!DefinedKernels::may_hold(file.path)) {
      throw Error(ErrorCode::InvalidArgument, std::string(kFile) + " file " + quoted(file.path),
                  "a kernel that is defined by a call has no file of this name");
    }
  }
}

}  // namespace

void refuse_memory(const KernelSpec& spec) {
  for (const ArgumentSpec& argument : spec.arguments) {
    if (argument.fill.in_memory) {
      throw Error(ErrorCode::PermissionDenied, spec.file + " /arguments/" + argument.name + "/fill/npy",
                  "only the daemon's user leaves an array in memory: send it");
    }
  }
}

void DefineCall::take(const v1::DefineKernelPart& part) {
  refuse_while_draining(context_);
  received_ += part.ByteSizeLong();
  if (received_ > kMaxReceived) {
    throw Error(ErrorCode::ResourceExhausted, kFile,
                "is longer than the limit of " + std::to_string(kMaxReceived) + " bytes");
  }
  if (bundle_.spec_json().empty()) {
    bundle_.set_file(kFile);
    bundle_.set_spec_json(part.spec_json());
  }
  for (const v1::SourceFile& file : part.files()) {
    // A file that is larger than a message comes in pieces, one after the other.
    const bool continues = bundle_.files_size() > 0 && bundle_.files().rbegin()->path() == file.path();
    if (continues) {
      bundle_.mutable_files()->rbegin()->mutable_content()->append(file.content());
    } else {
      *bundle_.add_files() = file;
    }
  }
}

void DefineCall::work(v1::DefineKernelReply& reply) {
  refuse_to_go_on(context_, cancelled_);
  if (bundle_.spec_json().empty()) {
    throw Error(ErrorCode::InvalidArgument, kFile, "the first part has no spec_json");
  }
  const std::shared_ptr<const KernelSpec> spec = parse_kernel_spec(bundle_from_wire(bundle_));
  if (open_->is_foreign()) {
    refuse_memory(*spec);
  }
  if (spec->triton) {
    check_data(*spec);  // its extents are numbers
  } else {
    check_files(*spec);
    refuse_name_of_folder(spec->name);
  }
  refuse_without_sandbox(*spec);
  if (context_.defined.add(*spec, open_->is_foreign())) {
    context_.kernels.reload();
  }
  reply.set_name(spec->name);
}

void DefineCall::refuse_name_of_folder(const std::string& name) const {
  for (const auto& entry : *context_.kernels.kernels()) {
    if (entry->name == name && !context_.defined.holds(entry->file)) {
      throw Error(ErrorCode::AlreadyExists, std::string(kFile) + " /name",
                  quoted(name) + " is the name of " + entry->file);
    }
  }
}

void DefineCall::refuse_without_sandbox(const KernelSpec& spec) const {
  const auto agents = context_.fleet.agents();
  const ToolchainNeed need = toolchain_need(spec, open_->is_foreign());
  if (!current_toolchain(*agents, toolchain_need(spec, false))) {
    return;
  }
  if (!current_toolchain(*agents, need)) {
    throw Error(ErrorCode::FailedPrecondition, kFile, no_toolchain_because(need, *agents));
  }
}

}  // namespace cubind
