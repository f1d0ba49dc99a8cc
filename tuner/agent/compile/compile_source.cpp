#include "tuner/agent/compile/compile_source.hpp"

#include <utility>

#include "base/error.hpp"
#include "base/zstd.hpp"
#include "plan/answer_wire.hpp"
#include "plan/compiled_plan.hpp"
#include "schemas/limits.hpp"
#include "tuner/spec/wire.hpp"

namespace cubind {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPoll{50};  // how late a stop is seen while compilers work

template <typename Repeated>
std::vector<std::string> strings(const Repeated& from) {
  return {from.begin(), from.end()};
}

Compiled known_artifact(const v1::ArtifactUpload& upload) {
  Compiled known;
  known.key = {Digest::from_bytes(upload.key()).value_or(Digest{}), upload.key_full()};
  known.toolchain = toolchain_from_wire(upload.toolchain());
  known.architecture = upload.info().architecture();
  known.entries = strings(upload.entries());
  known.symbols = strings(upload.entry_symbols());
  known.resources.assign(upload.info().entries().begin(), upload.info().entries().end());
  known.cubin_digest = Digest::from_bytes(upload.info().digest()).value_or(Digest{});
  known.cubin_bytes = upload.info().cubin_bytes();
  known.compile_ms = upload.compile_ms();
  known.stored = true;
  return known;
}

}  // namespace

LaunchPlan as_compiled(LaunchPlan plan, const Compiled& compiled) {
  return as_compiled(std::move(plan), compiled.entries, compiled.symbols, compiled.resources);
}

CompileSource::CompileSource(Compiler& compiles, JobChannel& channel, JobStop& stop,
                             const google::protobuf::RepeatedPtrField<v1::ArtifactUpload>& known)
    : compiles_(compiles), channel_(channel), stop_(stop) {
  for (const v1::ArtifactUpload& upload : known) {
    Compiled artifact = known_artifact(upload);
    done_.emplace(artifact.key.digest, std::move(artifact));
  }
}

CompileSource::~CompileSource() {
  for (const auto& [key, running] : running_) {
    compiles_.give_up(key);
  }
}

void CompileSource::want(const Wanted& wanted) {
  if (done_.contains(wanted.key.digest) || running_.contains(wanted.key.digest)) {
    return;
  }
  start(wanted);
}

void CompileSource::start(const Wanted& wanted) {
  raise_if_awaited();
  const bool awaited = channel_.is_awaited();
  in_background_ = in_background_ || !awaited;
  compiles_.want(wanted.key.digest, awaited ? wanted.priority : CompilePriority::Background, wanted.input);
  running_.emplace(wanted.key.digest, wanted);
}

void CompileSource::raise_if_awaited() {
  if (!in_background_ || !channel_.is_awaited()) {
    return;
  }
  in_background_ = false;
  for (const auto& [key, running] : running_) {
    compiles_.raise(key, running.priority);
  }
}

Compiled& CompileSource::finish(const Digest& key) {
  Compiler::ResultPtr compiled;
  while (!compiled) {
    stop_.check();
    raise_if_awaited();
    compiled = compiles_.wait(key, kPoll);
  }
  nvrtc_calls_ += compiles_.take_nvrtc_calls(key);
  Wanted wanted = std::move(running_.extract(key).mapped());
  compiles_.give_up(key);

  Compiled result;
  result.key = std::move(wanted.key);
  result.toolchain = std::move(wanted.toolchain);
  result.architecture = compiled->architecture;
  result.outcome = compiled->reply.outcome();
  result.log = compiled->reply.log();
  result.entries = compiled->entries;
  result.symbols = strings(compiled->reply.entry_symbols());
  result.resources.assign(compiled->reply.resources().begin(), compiled->reply.resources().end());
  result.cubin = compiled->reply.cubin();
  result.cubin_digest = Digest::of(result.cubin);
  result.cubin_bytes = result.cubin.size();
  result.compile_ms = compiled->reply.compile_ms();
  return done_[key] = std::move(result);
}

const Compiled& CompileSource::get(const Wanted& wanted) {
  const auto found = done_.find(wanted.key.digest);
  if (found != done_.end()) {
    return found->second;
  }
  want(wanted);
  return finish(wanted.key.digest);
}

const std::string& CompileSource::kept_cubin(const Digest& key) {
  Compiled& artifact = done_.at(key);
  if (!artifact.cubin.empty()) {
    return artifact.cubin;
  }
  if (const auto known = compiles_.find(key);
      known && Digest::of(known->reply.cubin()) == artifact.cubin_digest) {
    artifact.cubin = known->reply.cubin();
  } else if (auto bytes = channel_.fetch_cubin(artifact.cubin_digest);
             bytes && Digest::of(*bytes) == artifact.cubin_digest) {
    artifact.cubin = std::move(*bytes);
  }
  return artifact.cubin;
}

const std::string& CompileSource::cubin(const Wanted& wanted) {
  get(wanted);
  if (const std::string& kept = kept_cubin(wanted.key.digest); !kept.empty()) {
    return kept;
  }
  start(wanted);
  const Compiled& again = finish(wanted.key.digest);
  if (again.outcome != v1::CORRECT) {
    throw Error(ErrorCode::Internal, "compile",
                "an artifact that was compiled before is refused now: " + again.log);
  }
  return again.cubin;
}

void CompileSource::forget_bytes(const Digest& key) {
  const auto found = done_.find(key);
  if (found != done_.end() && found->second.stored) {
    std::string().swap(found->second.cubin);
  }
}

void CompileSource::add_to(v1::Batch& batch, const Digest& key) {
  const auto found = done_.find(key);
  if (found == done_.end() || found->second.stored || found->second.outcome != v1::CORRECT) {
    return;
  }
  v1::ArtifactUpload upload = upload_of(found->second);
  if (batch.ByteSizeLong() + upload.info().zstd_cubin().size() > kMaxInlineCubinBytes) {
    const std::string bytes = std::move(*upload.mutable_info()->mutable_zstd_cubin());
    upload.mutable_info()->clear_zstd_cubin();
    channel_.put_artifact(upload.info(), bytes);
  }
  *batch.add_artifacts() = std::move(upload);
}

void CompileSource::mark_stored(const Digest& key) {
  const auto found = done_.find(key);
  if (found != done_.end()) {
    found->second.stored = found->second.outcome == v1::CORRECT;
    forget_bytes(key);
  }
}

v1::ArtifactUpload upload_of(const Compiled& compiled) {
  v1::ArtifactUpload upload;
  upload.set_key(bytes_of(compiled.key.digest));
  upload.set_key_full(compiled.key.full);
  v1::ArtifactInfo& info = *upload.mutable_info();
  info.set_digest(bytes_of(compiled.cubin_digest));
  info.set_architecture(compiled.architecture);
  info.set_cubin_bytes(compiled.cubin_bytes);
  if (!compiled.cubin.empty()) {
    info.set_zstd_cubin(zstd_compress(compiled.cubin));
  }
  info.set_key(upload.key());
  info.set_toolchain(compiled.toolchain.name);
  info.mutable_entries()->Assign(compiled.resources.begin(), compiled.resources.end());
  upload.mutable_entries()->Assign(compiled.entries.begin(), compiled.entries.end());
  upload.mutable_entry_symbols()->Assign(compiled.symbols.begin(), compiled.symbols.end());
  upload.set_compile_ms(compiled.compile_ms);
  to_wire(compiled.toolchain, *upload.mutable_toolchain());
  return upload;
}

}  // namespace cubind
