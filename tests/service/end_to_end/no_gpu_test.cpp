// A machine without a GPU: tables and compilers are enough to serve.
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "tests/support/refusal_of.hpp"
#include "tests/support/tiny_daemon.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;

// No device at all. The table of another daemon, with K=2 at N=4096, lies in the folder of --tables.
class WithoutGpu {
 public:
  WithoutGpu() : daemon(options(folder.path())) {
    write_tiny_kernel(folder.path() / "kernels");
    create_folders(folder.path() / "tables");
    TinyDaemon tuner;
    tune(tuner->connect(), {tiny_problem(2)});
    write_file_atomic(folder.path() / "tables" / "mine.json", print_table(tuner.as_of_a_real_gpu()));
    daemon.start();
  }

  v1::GetVariantReply ask(const Problem& problem, const std::string& label = "nvidia-h200") const {
    v1::GetVariantRequest request;
    request.set_kernel(kTinyKernel);
    *request.mutable_problem() = wire(problem);
    request.mutable_device()->set_label(label);
    return daemon.connect().get_variant(request, kPatience);
  }

  TempDir folder{"cubind-test"};
  Daemon daemon;

 private:
  static DaemonOptions options(const std::filesystem::path& folder) {
    return {.folder = folder / "daemon",
            .kernels = {folder / "kernels"},
            .tables = folder / "tables",
            .environment = {"CUDA_VISIBLE_DEVICES="}};
  }
};

TEST_CASE("a table of a folder answers for a named device that is not here with evidence imported") {
  WithoutGpu machine;
  const v1::GetVariantReply reply = machine.ask(tiny_problem(2));
  CHECK(reply.provenance().departures().empty());
  CHECK(reply.provenance().evidence() == v1::IMPORTED);
  CHECK(reply.device() == "nvidia-h200");
  CHECK(reply.artifact().architecture() == "sm_90");
  CHECK_FALSE(reply.artifact().zstd_cubin().empty());
}

TEST_CASE("what no table covers gets the default configuration without a GPU") {
  WithoutGpu machine;
  const v1::GetVariantReply reply = machine.ask(tiny_problem(1000));
  REQUIRE(reply.provenance().departures_size() == 1);
  CHECK(reply.provenance().departures(0) == v1::DEFAULT_CONFIGURATION);
  CHECK(reply.provenance().evidence() == v1::NONE);
  CHECK(reply.job_id().empty());
  CHECK_THAT(reply.why(), Contains("no agent offers a GPU: ") &&
                              Contains("`cubindctl tune --device nvidia-h200` queues a job"));
  CHECK(machine.daemon.connect().list_jobs(false, kPatience).jobs().empty());
  CHECK(machine.daemon.connect().list_wanted({}, kPatience).total() == 1);
  CHECK_FALSE(reply.artifact().zstd_cubin().empty());
}

TEST_CASE("the log and the status tell once why no GPU is offered") {
  WithoutGpu machine;
  const auto reasons = [&] { return machine.daemon.connect().get_status(kPatience).no_device_because(); };
  REQUIRE(eventually([&] { return reasons().size() == 1; }));
  const std::string reason = reasons().at(0);
  CHECK_THAT(reason, Contains("no NVIDIA driver is here: libcuda.so.1 was not found") ||
                         Contains("the driver shows no GPU (CUDA_VISIBLE_DEVICES=\"\")"));
  const std::string log = machine.daemon.log(), line = "offers no GPU and measures nothing: " + reason + "\n";
  CHECK_THAT(log, Contains(line));
  CHECK(log.find("no GPU", log.find(line) + line.size()) == std::string::npos);
}

TEST_CASE("a label that names no device is refused with the labels that there are") {
  WithoutGpu machine;
  const Error error = error_of([&] { machine.ask(tiny_problem(2), "nvidia-h2000"); }).value();
  CHECK(std::string(error.what()).find("device") != std::string::npos);
  CHECK(std::string(error.what()).find("nvidia-h200") != std::string::npos);
}

}  // namespace
}  // namespace cubind::test
