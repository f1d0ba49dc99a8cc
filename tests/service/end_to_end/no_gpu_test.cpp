// A machine without a GPU: tables and compilers are enough to serve.
#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/json.hpp"
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
  try {
    machine.ask(tiny_problem(2), "nvidia-h2000");
    FAIL("answered");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("device") != std::string::npos);
    CHECK(std::string(error.what()).find("nvidia-h200") != std::string::npos);
  }
}

v1::CheckKernelRequest check_request(const std::filesystem::path& folder) {
  v1::CheckKernelRequest request;
  request.set_file("scale.json");
  request.set_spec_json(read_file(folder / "scale.json"));
  v1::SourceFile& source = *request.add_files();
  source.set_path("scale.cu");
  source.set_content(read_file(folder / "scale.cu"));
  *request.add_problems() = wire(tiny_problem(2));
  return request;
}

TEST_CASE("checking a kernel compiles its default and counts its configurations and stores nothing") {
  WithoutGpu machine;
  const Connection connection = machine.daemon.connect();
  const std::uint32_t artifacts = connection.get_status(kPatience).artifacts();
  const auto reply = connection.check_kernel(check_request(machine.folder.path() / "kernels"), kPatience);
  REQUIRE(reply.problems_size() == 1);
  CHECK(reply.problems(0).valid() == kTinyConfigurations);
  REQUIRE(reply.compiled_size() == 1);
  CHECK(reply.compiled(0).cubin_bytes() > 0);
  CHECK(connection.get_status(kPatience).artifacts() == artifacts);
}

TEST_CASE("checking a kernel whose entry takes other types than the spec passes names argument and types") {
  WithoutGpu machine;
  v1::CheckKernelRequest request = check_request(machine.folder.path() / "kernels");
  std::string& source = *request.mutable_files(0)->mutable_content();
  const std::size_t at = source.find("long long N) {");
  REQUIRE(at != std::string::npos);
  source.replace(at, 9, "int");
  try {
    machine.daemon.connect().check_kernel(request, kPatience);
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::InvalidArgument);
    CHECK(std::string(error.what()) ==
          "scale.json /launches/0/arguments/2: N is a scalar i64 (long long), the entry's parameter is int");
  }
}

TEST_CASE("checking a kernel with C names compares the number and the sizes of its arguments") {
  WithoutGpu machine;
  v1::CheckKernelRequest request = check_request(machine.folder.path() / "kernels");
  std::string& spec = *request.mutable_spec_json();
  const std::string entry = "scale<{T}, {THREADS}, {VECTOR}, {K}>";
  spec.replace(spec.find(entry), entry.size(), "plain");
  Json json = Json::parse(spec);
  json["defines"] = {"FACTOR={K}"};
  request.set_spec_json(json.dump());
  const auto check = [&](const std::string& parameters) {
    request.mutable_files(0)->set_content("extern \"C\" __global__ void plain(" + parameters + ") {}");
    return machine.daemon.connect().check_kernel(request, kPatience).compiled_size();
  };
  CHECK(check("const float* x, float* y, long long n") == 1);
  CHECK_THROWS_WITH(check("int only"),
                    "scale.json /launches/0/arguments: has 3, the entry takes 1: (of 4 bytes)");
  CHECK_THROWS_WITH(
      check("const float* x, float* y, int n"),
      "scale.json /launches/0/arguments/2: N is a scalar i64 (long long), the entry's parameter "
      "is of 4 bytes");
}

TEST_CASE("checking a kernel that does not compile says what the compiler said") {
  WithoutGpu machine;
  v1::CheckKernelRequest request = check_request(machine.folder.path() / "kernels");
  request.mutable_files(0)->set_content(
      "template <typename T, int A, int B, int K> __global__ void scale(T) { oops; }");
  try {
    machine.daemon.connect().check_kernel(request, kPatience);
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::InvalidArgument);
    CHECK(std::string(error.what()).find("oops") != std::string::npos);
  }
}

}  // namespace
}  // namespace cubind::test
