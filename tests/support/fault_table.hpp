// The table of docs/faults.md as tests play it: a kernel with one broken configuration in each of its
// problems.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "client/connection.hpp"
#include "tuner/table/table.hpp"

namespace cubind::test {

/// The value of FAULT in tests/gpu/faults/faulty.cu.
enum class Fault : std::uint8_t {
  CompileError = 1,
  CompilerCrash,
  CompilerHang,
  LargeCubin,
  SharedMemory,
  Registers,
  IllegalAddress,
  MisalignedAddress,
  Assertion,
  Trap,
  EndlessLoop,
  WrongResult,
  NotANumber,
  OneTooFar,
  OtherBits,
  OutOfMemory,
  WorkerKilled,
  GpuLost,
  AgentKilled,
  DiskFull,
};

struct FaultRow {
  Fault fault;
  std::string name;   // as docs/faults.md lists it
  Outcome outcome;    // of the configuration in the job that meets it: Correct where it is innocent, and wins
  std::string words;  // in the message that is stored with it; empty: none
  std::string injected =
      {};  // into the replay device: the "at" and "fault" of the faults file; empty: nothing
};

/// In the order of their numbers.
const std::vector<FaultRow>& fault_table();

/// tests/gpu/faults, with the kernel "faulty".
std::filesystem::path faulty_kernel_folder();
Problem faulty_problem(Fault fault);
/// It would win at its problem if nothing were wrong with it.
Configuration broken_configuration(Fault fault);
/// Of the others the fastest.
Configuration right_winner();
/// All configurations of all problems, for the replay device.
Table faulty_table();

/// The end of a tuning job for the fault's problem: with `reproducible` numerics where the fault shows only
/// so.
/// `on_event` gets every event.
v1::TuneEvent tune_faulty(const Connection& connection, Fault fault, const OnTuneEvent& on_event = {});
/// How many configurations ended so.
std::uint32_t count_of(const v1::TuneEvent& end, Outcome outcome);
/// The stored trial of the fault's configuration; absent: none is remembered.
std::optional<TableTrial> stored_trial(const Connection& connection, Fault fault);

}  // namespace cubind::test
