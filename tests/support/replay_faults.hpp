// Faults of a FaultyDevice, read from a JSON file:
//
//   {"pace_us": 500, "hold": "/tmp/go", "log": "/tmp/log", "lock": "/tmp/locks", "free_memory_bytes": 65536,
//   "driver": "590.10", "faults": [
//     {"at": "measure", "fault": "illegal_address", "configuration": {"THREADS": 256},
//      "problem": {"N": 4096}, "times": 1}]}
//
//   pace_us        wall time that every load, verification and sample takes; default 0
//   log            each measured block is a line of this file: trial key, stage, first sample, samples, pid
//   lock           a folder in which a worker holds the lock of its device, as it would that of a GPU
//   hold           no request is answered before this file exists
//   free_memory_bytes   of the device; a problem that takes more than the share of it (--memory-fraction) is
//                  out of memory. Default: there is room for whatever was recorded
//   users          ids of processes that have a context on the device as long as they live
//   driver         the version of the driver instead of the table's
//   at             "prepare", "load", "verify", "measure" or "open" (of a device: no configuration and
//                  no problem)
//   fault          "hang", "illegal_address", "misaligned_address", "assert", "trap", "gpu_lost",
//                  "out_of_memory", "launch", "wrong_result" (at "measure": a write outside of the buffers),
//                  "other_bits" (in two runs), "foreign_process" (and no answer), "contended" (measured
//                  next to one); at "load" also "too_many_registers"
//   configuration, problem   the named values must be equal; absent: any
//   times          how often in all, counted across processes in FILE.used/; absent: always
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/problem.hpp"

namespace cubind::test {

enum class FaultPoint : std::uint8_t { Prepare, Load, Verify, Measure, Open };
enum class FaultKind : std::uint8_t {
  Hang,
  IllegalAddress,
  MisalignedAddress,
  Assert,
  Trap,
  GpuLost,
  OutOfMemory,
  Launch,
  TooManyRegisters,
  WrongResult,
  OtherBits,
  ForeignProcess,
  Contended
};

/// Used from one thread; several processes may share a file.
class ReplayFaults {
 public:
  ReplayFaults() = default;
  /// Throws Error(InvalidArgument) at "FILE /pointer".
  static ReplayFaults read(const std::string& file);

  std::chrono::microseconds pace() const { return pace_; }
  /// Returns at once without `hold`, else when the file exists.
  void wait_while_held() const;
  /// 0: memory plays no part.
  std::uint64_t free_memory_bytes() const { return free_memory_; }
  /// Empty: the device is not locked.
  const std::string& lock_folder() const { return lock_; }
  /// Empty: the table's.
  const std::string& driver() const { return driver_; }
  /// As NVML lists processes: those of `users` that live.
  std::vector<std::uint32_t> living_users() const;
  /// Appends a line to the log, where there is one.
  void log(const std::string& line) const;
  /// The fault to have now. Taking one counts it. `configuration` is null if the point has none.
  std::optional<FaultKind> take(FaultPoint point, const Problem& problem,
                                const Configuration* configuration) const;

 private:
  struct Fault {
    FaultPoint point = FaultPoint::Measure;
    FaultKind kind = FaultKind::Hang;
    std::vector<NamedValue> configuration, dims;
    std::optional<std::int64_t> times;
  };
  bool use(std::size_t index) const;

  std::string file_, hold_, log_, lock_, driver_;
  std::chrono::microseconds pace_{0};
  std::uint64_t free_memory_ = 0;
  std::vector<std::uint32_t> users_;
  std::vector<Fault> faults_;
};

}  // namespace cubind::test
