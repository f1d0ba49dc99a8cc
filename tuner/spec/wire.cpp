#include "tuner/spec/wire.hpp"

#include <algorithm>
#include <string>

#include "base/error.hpp"
#include "base/refuse.hpp"
#include "base/text.hpp"
#include "base/zstd.hpp"
#include "plan/answer_wire.hpp"
#include "plan/wire.hpp"
#include "plan/wire_fields.hpp"

namespace cubind {

void to_wire(const Policy& from, v1::Policy& to) {
  to.set_warm_l2(from.warm_l2);
  to.set_flush_method(from.flush_method);
  to.set_graph_launch(from.graph_launch);
}

Policy policy_from_wire(const v1::Policy& from, std::string_view field) {
  if (from.flush_method() != 0 && from.flush_method() != kFlushMethod) {
    refuse(member_field(field, "flush_method"), std::to_string(from.flush_method()) +
                                                    " is not measured, only " + std::to_string(kFlushMethod) +
                                                    ": twice the L2 is read right before the kernel");
  }
  return {from.warm_l2(), kFlushMethod, from.graph_launch()};
}

static_assert(static_cast<int>(Numerics::Kind::Tolerance) == v1::Numerics::TOLERANCE);
static_assert(static_cast<int>(Numerics::Kind::Reproducible) == v1::Numerics::REPRODUCIBLE);
static_assert(static_cast<int>(Numerics::Kind::Invariant) == v1::Numerics::INVARIANT);

void to_wire(const Numerics& from, v1::Numerics& to) {
  to.set_kind(static_cast<v1::Numerics::Kind>(from.kind));
  to.set_invariant_dim(from.invariant_dim);
}

Numerics numerics_from_wire(const v1::Numerics& from, std::string_view field) {
  Numerics to;
  switch (from.kind()) {
    case v1::Numerics::TOLERANCE:
      to.kind = Numerics::Kind::Tolerance;
      break;
    case v1::Numerics::REPRODUCIBLE:
      to.kind = Numerics::Kind::Reproducible;
      break;
    case v1::Numerics::INVARIANT:
      to.kind = Numerics::Kind::Invariant;
      break;
    default:
      refuse_unknown(member_field(field, "kind"), "kind of numerics", static_cast<int>(from.kind()));
  }
  const bool invariant = to.kind == Numerics::Kind::Invariant;
  if (invariant == from.invariant_dim().empty()) {
    refuse(member_field(field, "invariant_dim"),
           invariant ? "the dim is missing, as in \"N\"" : "only kind INVARIANT has a dim");
  }
  to.invariant_dim = from.invariant_dim();
  return to;
}

void to_wire(const ArgumentSpec& from, v1::Argument& to) {
  to.set_name(from.name);
  to.set_source(from.buffer        ? v1::Parameter::BUFFER
                : from.from_caller ? v1::Parameter::CALLER
                                   : v1::Parameter::VALUE);
  to.set_type(from.type);
  if (from.buffer) {
    to.set_role(to_wire(from.role));
    to.set_extent(from.extent);
    to.mutable_shape()->Assign(from.shape.begin(), from.shape.end());
    to.set_align_bytes(from.align_bytes);
    to.set_symbol(from.symbol);
  }
}

void to_wire(const SpecBundle& from, v1::SpecBundle& to) {
  to.Clear();
  to.set_file(from.file);
  to.set_spec_json(from.spec_json);
  for (const SourceFile& file : from.files) {
    v1::SourceFile& added = *to.add_files();
    added.set_path(file.path);
    added.set_content(file.content);
  }
}

namespace {

constexpr std::uint64_t kMostFileBytes = std::uint64_t{64} << 20;

std::string inflated(const v1::SourceFile& file, const std::string& field) {
  try {
    return zstd_decompress(file.zstd_content(), file.content_bytes());
  } catch (const Error& error) {
    throw Error(ErrorCode::InvalidArgument, field + ".zstd_content", error.cause());
  }
}

}  // namespace

void compress_files(google::protobuf::RepeatedPtrField<v1::SourceFile>& files) {
  for (v1::SourceFile& file : files) {
    file.set_content_bytes(file.content().size());
    file.set_zstd_content(zstd_compress(file.content()));
    file.clear_content();
  }
}

SpecBundle bundle_from_wire(const v1::SpecBundle& from) {
  SpecBundle to{from.file(), from.spec_json(), {}};
  std::uint64_t bytes = 0;
  for (int i = 0; i < from.files_size(); ++i) {
    const v1::SourceFile& file = from.files(i);
    const std::string field = element("files", i);
    bytes += file.content_bytes();
    if (file.content_bytes() > kMostFileBytes || bytes > kMostFileBytes) {
      throw Error(ErrorCode::ResourceExhausted, field + ".content_bytes", "the files have more than 64 MiB");
    }
    to.files.push_back({file.path(), file.zstd_content().empty() ? file.content() : inflated(file, field)});
  }
  std::ranges::sort(to.files, {}, &SourceFile::path);
  return to;
}

void to_wire(const ToolchainIdentity& from, v1::ToolchainIdentity& to) {
  to.set_name(from.name);
  to.set_nvrtc_digest(bytes_of(from.nvrtc));
  to.set_builtins_digest(bytes_of(from.builtins));
  to.set_headers_digest(bytes_of(from.headers));
}

ToolchainIdentity toolchain_from_wire(const v1::ToolchainIdentity& from, std::string_view field) {
  return {from.name(), digest_from_wire(from.nvrtc_digest(), member_field(field, "nvrtc_digest")),
          digest_from_wire(from.builtins_digest(), member_field(field, "builtins_digest")),
          digest_from_wire(from.headers_digest(), member_field(field, "headers_digest"))};
}

}  // namespace cubind
