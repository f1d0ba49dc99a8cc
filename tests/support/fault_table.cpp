#include "tests/support/fault_table.hpp"
#include "tests/support/facts.hpp"

#include <algorithm>
#include <stdexcept>

#include "plan/answer_wire.hpp"
#include "plan/wire.hpp"
#include "tests/support/daemon_fixture.hpp"
#include "tests/support/example_facts.hpp"
#include "tests/support/paths.hpp"

namespace cubind::test {
namespace {

constexpr const char* kFaulty = "faulty";
constexpr std::size_t kFaultySamples = 64;  // more than a finalist needs

std::int64_t number_of(Fault fault) { return static_cast<std::int64_t>(fault); }

Configuration faulty_configuration(std::int64_t threads, std::int64_t fault) {
  return {{{"THREADS", threads}, {"FAULT", fault}}};
}

TableTrial faulty_trial(const Digest& device_class, const Problem& problem,
                        const Configuration& configuration, double time_us) {
  TableTrial trial;
  trial.context.kernel = kFaulty;
  trial.context.problem = problem;
  trial.context.device_class = device_class;
  trial.context.policy = "cold/3,stream";
  trial.context.configuration = configuration;
  trial.context.trial = Digest::of(to_string(problem) + " " + to_string(configuration));
  trial.context.driver = "580.159.04";
  trial.context.architecture = "sm_90";
  trial.timer = "cupti";
  trial.tick_us = 0.032;
  trial.finals = {block_of(std::vector<double>(kFaultySamples, time_us))};
  trial.screening = {block_of(std::vector<double>(3, time_us))};
  return trial;
}

}  // namespace

const std::vector<FaultRow>& fault_table() {
  static const std::vector<FaultRow> rows = {
      {Fault::CompileError, "compile error", Outcome::Compile, "this configuration does not compile"},
      {Fault::CompilerCrash, "compiler crash", Outcome::Compile, "the compiler crashed"},
      {Fault::CompilerHang, "compiler hang", Outcome::Compile, "the compile took"},
      {Fault::LargeCubin, "cubin too large", Outcome::Compile, "the cubin has"},
      {Fault::SharedMemory, "too much shared memory", Outcome::Constraint, "bytes of shared memory"},
      {Fault::Registers, "too many registers to launch", Outcome::Constraint, "can be launched",
       R"("at": "load", "fault": "too_many_registers")"},
      {Fault::IllegalAddress, "illegal address", Outcome::Runtime, "CUDA_ERROR_ILLEGAL_ADDRESS",
       R"("at": "measure", "fault": "illegal_address")"},
      {Fault::MisalignedAddress, "misaligned address", Outcome::Runtime, "CUDA_ERROR_MISALIGNED_ADDRESS",
       R"("at": "measure", "fault": "misaligned_address")"},
      {Fault::Assertion, "device assert", Outcome::Runtime, "CUDA_ERROR_ASSERT",
       R"("at": "measure", "fault": "assert")"},
      {Fault::Trap, "trap", Outcome::Runtime, "CUDA_ERROR", R"("at": "measure", "fault": "trap")"},
      {Fault::EndlessLoop, "endless loop", Outcome::Timeout, "the device worker died",
       R"("at": "measure", "fault": "hang")"},
      {Fault::WrongResult, "wrong result", Outcome::WrongResult, "ROW=12",
       R"("at": "verify", "fault": "wrong_result")"},
      {Fault::NotANumber, "NaN", Outcome::WrongResult, "ROW=13",
       R"("at": "verify", "fault": "wrong_result")"},
      {Fault::OneTooFar, "write outside a buffer", Outcome::WrongResult, "written behind",
       R"("at": "measure", "fault": "wrong_result")"},
      {Fault::OtherBits, "other bits in each run", Outcome::WrongResult, "",
       R"("at": "verify", "fault": "other_bits")"},
      {Fault::OutOfMemory, "out of memory", Outcome::OutOfMemory, "",
       R"("at": "load", "fault": "out_of_memory")"},
      {Fault::WorkerKilled, "worker killed", Outcome::Correct, ""},
      {Fault::GpuLost, "GPU lost for a while", Outcome::Correct, ""},
      {Fault::AgentKilled, "agent killed", Outcome::Correct, ""},
      {Fault::DiskFull, "disk full on the agent", Outcome::Correct, ""},
  };
  return rows;
}

std::filesystem::path faulty_kernel_folder() { return source_dir() / "tests" / "gpu" / "faults"; }

Problem faulty_problem(Fault fault) { return {{{"N", 4096}, {"ROW", number_of(fault)}}, {}, {}, {}}; }

Configuration broken_configuration(Fault fault) { return faulty_configuration(64, number_of(fault)); }

Configuration right_winner() { return faulty_configuration(256, 0); }

Table faulty_table() {
  Table table;
  const DeviceClass device = derive_device_class(example_facts(), "facts");
  table.devices.push_back({device.digest, device.label, device.facts});
  for (const FaultRow& row : fault_table()) {
    const Problem problem = faulty_problem(row.fault);
    const auto add = [&](const Configuration& configuration, double time_us) {
      table.trials.push_back(faulty_trial(device.digest, problem, configuration, time_us));
    };
    add(broken_configuration(row.fault), 5);
    add(right_winner(), 10);
    add(faulty_configuration(128, 0), 20);
    add(faulty_configuration(64, 0), 40);
  }
  return table;
}

v1::TuneEvent tune_faulty(const Connection& connection, Fault fault, const OnTuneEvent& on_event) {
  v1::TuneRequest request;
  request.set_kernel(kFaulty);
  *request.add_problems() = wire(faulty_problem(fault));
  if (fault == Fault::OtherBits) {
    request.mutable_numerics()->set_kind(v1::Numerics::REPRODUCIBLE);
  }
  v1::TuneEvent last;
  connection.tune(
      request,
      [&](const v1::TuneEvent& event) {
        if (on_event) {
          on_event(event);
        }
        last = event;
      },
      {}, std::nullopt);
  return last;
}

std::uint32_t count_of(const v1::TuneEvent& end, Outcome outcome) {
  for (const v1::OutcomeCount& one : end.outcomes()) {
    if (one.outcome() == to_wire(outcome)) {
      return one.count();
    }
  }
  return 0;
}

std::optional<TableTrial> stored_trial(const Connection& connection, Fault fault) {
  const Table table = read_table(export_everything(connection), "export");
  const auto found = std::ranges::find_if(table.trials, [&](const TableTrial& trial) {
    return trial.context.problem == faulty_problem(fault) &&
           trial.context.configuration == broken_configuration(fault);
  });
  return found == table.trials.end() ? std::nullopt : std::optional(*found);
}

}  // namespace cubind::test
