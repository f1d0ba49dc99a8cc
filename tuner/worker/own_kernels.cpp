#include "tuner/worker/own_kernels.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "cuda_api/shared_memory.hpp"
#include "tuner/verify/setup_memory.hpp"
#include "tuner/worker/device_kernels.hpp"  // made from device_kernels.ptx
#include "tuner/worker/own_cubin.hpp"

namespace cubind::worker {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kMaxBlocks = 4096;

// The layouts of device_kernels.cu.
struct ZoneEntry {
  cuda::DevicePtr bytes;
  std::uint64_t size;
  std::uint32_t buffer, side;
};
struct ZoneResult {
  std::uint64_t first_offset, changed;
};
struct Partial {
  double worst_excess;
  std::uint64_t worst_index, mismatches;
};
static_assert(sizeof(ZoneEntry) == 24 && sizeof(ZoneResult) == 16 && sizeof(Partial) == 24);

}  // namespace

OwnKernels::OwnKernels(DriverContext& context, MemoryBudget& budget) : context_(context), budget_(budget) {
  load();
  fill_ = function("cubind_fill");
  paint_ = function("cubind_paint_zones");
  check_ = function("cubind_check_zones");
  hash_ = function("cubind_hash");
  compare_ = function("cubind_compare");
  clear_ = function("cubind_clear");
  read_ = function("cubind_read");
  spin_ = function("cubind_spin");
  wipe_ = function("cubind_wipe_shared");
}

// A driver that does not know the cubin's format compiles the PTX.
void OwnKernels::load() {
  const cuda::DriverApi& api = context_.api();
  const auto cubin = own_cubin(context_.facts().cc_major, context_.facts().cc_minor);
  if (cubin && api.module_load_data(&module_, cubin->data()) == cuda::Result::Success) {
    return;
  }
  const std::string ptx(kDeviceKernelsPtx);
  cuda::check(api, api.module_load_data(&module_, ptx.c_str()), "cubind's own kernels");
}

OwnKernels::~OwnKernels() { context_.api().module_unload(module_); }

cuda::Function OwnKernels::function(const char* name) const {
  cuda::Function found = nullptr;
  cuda::check(context_.api(), context_.api().module_get_function(&found, module_, name), name);
  return found;
}

unsigned OwnKernels::blocks_for(std::uint64_t items) const {
  const std::uint64_t wanted = (items + kThreads - 1) / kThreads;
  return static_cast<unsigned>(std::clamp<std::uint64_t>(wanted, 1, kMaxBlocks));
}

void OwnKernels::launch(cuda::Function function, unsigned blocks, unsigned rows, void** arguments) const {
  cuda::check(context_.api(),
              context_.api().launch_kernel(function, blocks, rows, 1, kThreads, 1, 1, 0, context_.stream(),
                                           arguments, nullptr),
              "launch of one of cubind's own kernels");
}

cuda::DevicePtr OwnKernels::workspace(std::uint64_t bytes) {
  if (workspace_.bytes() < bytes) {
    workspace_ = DeviceMemory(budget_, std::max(bytes, verify::kWorkspaceBytes));
  }
  return workspace_.address();
}

void OwnKernels::fill(TypedAddress to, std::uint64_t elements, const FillWork& work) {
  if (elements == 0) {
    return;
  }
  cuda::DevicePtr cumulative = 0;
  std::uint64_t choices = work.cumulative.size();
  if (choices > 0) {
    cumulative = workspace(choices * sizeof(double));
    cuda::check(context_.api(),
                context_.api().memcpy_htod_async(cumulative, work.cumulative.data(), choices * sizeof(double),
                                                 context_.stream()),
                "upload of a fill's distribution");
  }
  auto type = static_cast<int>(to.type);
  auto kind = static_cast<int>(work.kind);
  double a = work.a;
  double b = work.b;
  std::uint64_t seed = work.seed;
  int grain_bits = work.grain_bits.value_or(-1);
  std::uint64_t pattern = work.pattern;
  std::array<void*, 11> arguments{&to.address, &elements,   &type,    &kind,       &a,      &b,
                                  &seed,       &cumulative, &choices, &grain_bits, &pattern};
  launch(fill_, blocks_for(elements), 1, arguments.data());
}

cuda::DevicePtr OwnKernels::upload_zones(const std::vector<ZoneOnDevice>& zones, std::uint64_t extra_bytes) {
  std::vector<ZoneEntry> entries;
  entries.reserve(zones.size());
  for (const ZoneOnDevice& zone : zones) {
    entries.push_back(
        {zone.address, zone.bytes, zone.zone.buffer, static_cast<std::uint32_t>(zone.zone.side)});
  }
  const std::uint64_t bytes = entries.size() * sizeof(ZoneEntry);
  const cuda::DevicePtr table = workspace(bytes + extra_bytes);
  cuda::check(context_.api(),
              context_.api().memcpy_htod_async(table, entries.data(), bytes, context_.stream()),
              "upload of the table of red zones");
  return table;
}

void OwnKernels::paint(const std::vector<ZoneOnDevice>& zones) {
  if (zones.empty()) {
    return;
  }
  cuda::DevicePtr table = upload_zones(zones, 0);
  std::array<void*, 1> arguments{&table};
  launch(paint_, blocks_for(verify::kRedZoneBytes), static_cast<unsigned>(zones.size()), arguments.data());
}

std::vector<std::optional<verify::ZoneDamage>> OwnKernels::check(const std::vector<ZoneOnDevice>& zones) {
  std::vector<std::optional<verify::ZoneDamage>> damages(zones.size());
  if (zones.empty()) {
    return damages;
  }
  std::vector<ZoneResult> results(zones.size(), ZoneResult{~std::uint64_t{0}, 0});
  const std::uint64_t result_bytes = results.size() * sizeof(ZoneResult);
  cuda::DevicePtr table = upload_zones(zones, result_bytes);
  cuda::DevicePtr memory = table + zones.size() * sizeof(ZoneEntry);
  const cuda::DriverApi& api = context_.api();
  cuda::check(api, api.memcpy_htod_async(memory, results.data(), result_bytes, context_.stream()),
              "red zone results");
  std::array<void*, 2> arguments{&table, &memory};
  launch(check_, blocks_for(verify::kRedZoneBytes), static_cast<unsigned>(zones.size()), arguments.data());
  cuda::check(api, api.memcpy_dtoh_async(results.data(), memory, result_bytes, context_.stream()),
              "red zone results");
  context_.synchronize("check of the red zones");
  for (std::size_t i = 0; i < zones.size(); ++i) {
    if (results[i].changed > 0) {
      damages[i] = verify::ZoneDamage{results[i].first_offset, results[i].changed};
    }
  }
  return damages;
}

std::vector<std::uint64_t> OwnKernels::hash(const std::vector<BytesOnDevice>& buffers) {
  std::vector<std::uint64_t> sums(buffers.size());
  if (buffers.empty()) {
    return sums;
  }
  const cuda::DriverApi& api = context_.api();
  const std::uint64_t sum_bytes = sums.size() * sizeof(std::uint64_t);
  const cuda::DevicePtr memory = workspace(sum_bytes);
  cuda::check(api, api.memset_d8_async(memory, 0, sum_bytes, context_.stream()), "hash");
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    BytesOnDevice of = buffers[i];
    cuda::DevicePtr sum = memory + i * sizeof(std::uint64_t);
    std::array<void*, 3> arguments{&of.address, &of.bytes, &sum};
    if (of.bytes > 0) {
      launch(hash_, blocks_for(of.bytes / 4 + 1), 1, arguments.data());
    }
  }
  cuda::check(api, api.memcpy_dtoh_async(sums.data(), memory, sum_bytes, context_.stream()), "hash");
  context_.synchronize("hash of buffers");
  return sums;
}

verify::Comparison OwnKernels::compare(TypedAddress out, TypedAddress reference, std::uint64_t elements,
                                       verify::Bounds bounds) {
  verify::Comparison total;
  total.elements = elements;
  if (elements == 0) {
    return total;
  }
  const unsigned blocks = std::min(blocks_for(elements), 1024U);
  std::vector<Partial> partials(blocks);
  const std::uint64_t bytes = partials.size() * sizeof(Partial);
  cuda::DevicePtr memory = workspace(bytes);
  auto out_type = static_cast<int>(out.type);
  auto reference_type = static_cast<int>(reference.type);
  std::array<void*, 8> arguments{&out.address, &out_type,    &reference.address, &reference_type,
                                 &elements,    &bounds.rtol, &bounds.atol,       &memory};
  launch(compare_, blocks, 1, arguments.data());
  const cuda::DriverApi& api = context_.api();
  cuda::check(api, api.memcpy_dtoh_async(partials.data(), memory, bytes, context_.stream()), "comparison");
  context_.synchronize("comparison with the reference");
  for (const Partial& partial : partials) {
    total.mismatches += partial.mismatches;
    const bool worse = partial.worst_excess > total.worst_excess;
    const bool earlier =
        partial.worst_excess == total.worst_excess && partial.worst_index < total.worst_index;
    if (!worse && !(earlier && partial.worst_excess > 0)) {
      continue;
    }
    total.worst_excess = partial.worst_excess;
    total.worst_index = partial.worst_index;
  }
  return total;
}

void OwnKernels::clear(cuda::DevicePtr address, std::uint64_t bytes) {
  if (bytes == 0) {
    return;
  }
  std::array<void*, 2> arguments{&address, &bytes};
  launch(clear_, blocks_for(bytes / 16 + 1), 1, arguments.data());
}

void OwnKernels::read(cuda::DevicePtr address, std::uint64_t bytes) {
  std::uint64_t vectors = bytes / 16;
  cuda::DevicePtr nowhere = workspace(sizeof(std::uint32_t));
  std::array<void*, 3> arguments{&address, &vectors, &nowhere};
  launch(read_, blocks_for(vectors), 1, arguments.data());
}

void OwnKernels::spin(std::uint64_t clocks) {
  std::array<void*, 1> arguments{&clocks};
  cuda::check(
      context_.api(),
      context_.api().launch_kernel(spin_, 1, 1, 1, 1, 1, 1, 0, context_.stream(), arguments.data(), nullptr),
      "launch of the spin kernel");
}

// Of blocks with all shared memory that a block can have, each multiprocessor takes one. A launch without any
// follows, so that the L1 has no smaller share of the memory for that.
void OwnKernels::wipe_shared() {
  const cuda::DriverApi& api = context_.api();
  const auto most = static_cast<unsigned>(context_.facts().shared_optin_bytes);
  cuda::allow_shared_memory(api, wipe_, most, "cubind_wipe_shared");
  cuda::check(api, api.func_set_attribute(wipe_, cuda::FunctionAttribute::PreferredSharedCarveout, 0),
              "cubind_wipe_shared");
  for (unsigned bytes : {most, 0U}) {
    std::array<void*, 1> arguments{&bytes};
    cuda::check(api,
                api.launch_kernel(wipe_, static_cast<unsigned>(context_.facts().sm_count), 1, 1, kThreads, 1,
                                  1, bytes, context_.stream(), arguments.data(), nullptr),
                "launch of the kernel that wipes shared memory");
  }
}

}  // namespace cubind::worker
