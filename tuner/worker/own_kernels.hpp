// The worker's own kernels (device_kernels.cu), loaded into its context.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "plan/dtype.hpp"
#include "tuner/verify/compare.hpp"
#include "tuner/verify/red_zone.hpp"
#include "tuner/worker/device_memory.hpp"
#include "tuner/worker/driver_context.hpp"

namespace cubind::worker {

/// The rule that makes an element of a buffer from its index; the numbers are those of device_kernels.cu.
enum class FillKind : int { Normal, Uniform, Constant, Iota, Permutation, Choice };

struct FillWork {
  FillKind kind = FillKind::Constant;
  double a = 0;  // mean, low, value, start
  double b = 0;  // deviation, high, -, step
  std::uint64_t seed = 0;
  std::vector<double> cumulative;  // Choice
  /// With a value, only a quarter of the elements: which ones is drawn from the pattern for 64 grains of
  /// 2^grain_bits elements, and repeats.
  std::optional<int> grain_bits = std::nullopt;
  std::uint64_t pattern = 0;
};

/// Painted bytes on the device.
struct ZoneOnDevice {
  cuda::DevicePtr address = 0;
  std::uint64_t bytes = 0;
  verify::Zone zone;
};

struct BytesOnDevice {
  cuda::DevicePtr address = 0;
  std::uint64_t bytes = 0;
};

struct TypedAddress {
  cuda::DevicePtr address = 0;
  DType type = DType::F32;
};

/// All methods work on the context's stream; those that return something wait for it. Throw DriverError. One
/// thread.
class OwnKernels {
 public:
  OwnKernels(DriverContext& context, MemoryBudget& budget);
  ~OwnKernels();
  OwnKernels(const OwnKernels&) = delete;
  OwnKernels& operator=(const OwnKernels&) = delete;

  void fill(TypedAddress to, std::uint64_t elements, const FillWork& work);
  void paint(const std::vector<ZoneOnDevice>& zones);
  /// One entry a zone; absent: undamaged.
  std::vector<std::optional<verify::ZoneDamage>> check(const std::vector<ZoneOnDevice>& zones);
  /// One of each buffer. Equal for equal bytes, and for no others but by an accident of one in 2^64.
  std::vector<std::uint64_t> hash(const std::vector<BytesOnDevice>& buffers);
  /// `same_bits` is not decided here: compare hashes.
  verify::Comparison compare(TypedAddress out, TypedAddress reference, std::uint64_t elements,
                             verify::Bounds bounds);

  /// Enqueue only.
  void clear(cuda::DevicePtr address, std::uint64_t bytes);
  /// One launch that brings the bytes, whole vectors of 16, into the L2.
  void read(cuda::DevicePtr address, std::uint64_t bytes);
  void spin(std::uint64_t clocks);
  /// Overwrites the shared memory of each multiprocessor, by so many launches.
  static constexpr unsigned kWipeKernels = 2;
  void wipe_shared();

 private:
  void load();
  cuda::Function function(const char* name) const;
  void launch(cuda::Function function, unsigned blocks, unsigned rows, void** arguments) const;
  unsigned blocks_for(std::uint64_t items) const;
  cuda::DevicePtr upload_zones(const std::vector<ZoneOnDevice>& zones, std::uint64_t extra_bytes);
  cuda::DevicePtr workspace(std::uint64_t bytes);

  DriverContext& context_;
  MemoryBudget& budget_;
  cuda::Module module_ = nullptr;
  cuda::Function fill_, paint_, check_, hash_, compare_, clear_, read_, spin_, wipe_;
  DeviceMemory workspace_;  // partial results, tables; grows
};

}  // namespace cubind::worker
