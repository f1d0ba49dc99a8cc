#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/json.hpp"
#include "tests/fakes/sample_reply.hpp"
#include "tests/service/cubindctl/ctl.hpp"
#include "tests/support/paths.hpp"

namespace cubind::test {
namespace {

v1::Job job(const std::string& id) {
  v1::Job job;
  job.set_id(id);
  job.set_kernel("scale");
  *job.mutable_problem() = sample_reply({{{"N", 8}, {"D", 8}}, {{"T", DType::F16}}, {}, ""}, "").problem();
  job.set_state(v1::Job::RUNNING);
  job.set_stage("screening");
  job.set_configurations(10);
  job.set_configurations_done(4);
  job.set_elapsed_ms(2340);
  return job;
}

v1::DeviceClass h200() {
  v1::DeviceClass device;
  device.set_label("nvidia-h200");
  device.mutable_facts()->set_cc_major(9);
  device.mutable_facts()->set_sm_count(132);
  device.mutable_facts()->set_memory_bytes(std::uint64_t{141} << 30);
  device.set_records(14);
  device.set_shipped_records(11);
  return device;
}

}  // namespace

TEST_CASE("kernels lists names dims types and flags and what is not usable") {
  FakeDaemon daemon;
  daemon.scripts.list_kernels = [](const v1::ListKernelsRequest&) {
    v1::ListKernelsReply reply;
    v1::Kernel& kernel = *reply.add_kernels();
    kernel.set_name("scale");
    kernel.add_dims("N");
    kernel.add_types("T=f16|f32");
    kernel.set_records(7);
    kernel.set_shipped_records(2);
    v1::NamedValue& flag = *kernel.add_flags();
    flag.set_name("CAUSAL");
    flag.set_value(1);
    reply.add_kernels()->set_error("bad.json /tunables: the key is missing");
    return reply;
  };
  const ProgramResult result = ctl(daemon, {"kernels"});
  CHECK_THAT(result.out, Catch::Contains("scale") &&
                             Catch::Contains("T=f16|f32  CAUSAL=1        5        2  ") &&
                             Catch::Contains("not usable: bad.json /tunables: the key is missing"));
  CHECK(Json::parse(ctl(daemon, {"kernels", "--json"}).out)["kernels"].size() == 2);
}

TEST_CASE("kernels check sends the spec with its sources and prints the counts") {
  FakeDaemon daemon;
  v1::CheckKernelRequest asked;
  daemon.scripts.check_kernel = [&](const v1::CheckKernelRequest& request) {
    asked = request;
    v1::CheckKernelReply reply;
    reply.set_kernel("vector_add");
    auto& report = *reply.add_problems();
    *report.mutable_problem() = request.problems(0);
    report.set_valid(36);
    report.set_total(48);
    reply.add_compiled()->set_architecture("sm_90");
    return reply;
  };
  const std::string file = (source_dir() / "variants/vector_add/vector_add.json").string();
  const ProgramResult result = ctl(daemon, {"kernels", "check", file, "--problem", "N=4096,T=f32"});
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.out, Catch::Contains("36 of 48 configurations are valid"));
  CHECK(asked.file() == file);
  CHECK(asked.files_size() >= 2);
}

TEST_CASE("kernels check says which condition rejects how many and ends with 1 where nothing is valid") {
  FakeDaemon daemon;
  v1::CheckKernelRequest asked;
  daemon.scripts.check_kernel = [&](const v1::CheckKernelRequest& request) {
    asked = request;
    v1::CheckKernelReply reply;
    auto& report = *reply.add_problems();
    *report.mutable_problem() = request.problems(0);
    report.set_total(48);
    auto& step = *report.add_thinning();
    step.set_where("/constraints/1");
    step.set_condition("N > THREADS");
    step.set_rejected(48);
    return reply;
  };
  const std::string file = (source_dir() / "variants/vector_add/vector_add.json").string();
  const std::vector<std::string> check = {"kernels",   "check",    file, "--problem",
                                          "N=1,T=f32", "--device", "h"};
  const ProgramResult result = ctl(daemon, check);
  CHECK(result.exit_code == 1);
  CHECK(asked.device() == "h");
  CHECK_THAT(result.out, Catch::Contains("0 of 48 configurations are valid\n") &&
                             Catch::Contains("48       0  N > THREADS  /constraints/1\n"));
  CHECK(ctl(daemon, {"kernels", "check", file, "--device", "h", "--arch", "sm_80"}).exit_code == 2);
}

TEST_CASE("kernels check ends with 1 and says so where nothing was compiled") {
  FakeDaemon daemon;
  daemon.scripts.check_kernel = [&](const v1::CheckKernelRequest& request) {
    v1::CheckKernelReply reply;
    *reply.add_problems()->mutable_problem() = request.problems(0);
    reply.mutable_problems(0)->set_valid(36);
    reply.add_warnings("not compiled for sm_90 with X=1: no agent is connected");
    return reply;
  };
  const std::string file = (source_dir() / "variants/vector_add/vector_add.json").string();
  const ProgramResult result = ctl(daemon, {"kernels", "check", file, "--problem", "N=4096,T=f32"});
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.out, Catch::Contains("warning: not compiled for sm_90") &&
                             Catch::Contains("nothing was compiled, so the check ends with 1"));
}

TEST_CASE("kernels check of a spec that does not parse ends with 2 and the pointer") {
  FakeDaemon daemon;
  const ProgramResult result = ctl(daemon, {"kernels", "check", (source_dir() / "ruff.toml").string()});
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.err, Catch::Contains("ruff.toml"));
}

TEST_CASE("a missing file ends with 4") {
  FakeDaemon daemon;
  CHECK(ctl(daemon, {"kernels", "check", "/nowhere/k.json"}).exit_code == 4);
  CHECK(ctl(daemon, {"import", "/nowhere/t.json"}).exit_code == 4);
  CHECK(ctl(daemon, {"tune", "scale", "--shapes", "/nowhere/s.json"}).exit_code == 4);
}

TEST_CASE("devices tells which are here") {
  FakeDaemon daemon;
  daemon.scripts.list_devices = [] {
    v1::ListDevicesReply reply;
    *reply.add_devices() = h200();
    return reply;
  };
  CHECK_THAT(ctl(daemon, {"devices"}).out,
             Catch::Contains("nvidia-h200  9.0  132  141.0 GiB        3       11  not here"));
  CHECK(Json::parse(ctl(daemon, {"devices", "--json"}).out)["devices"][0]["memory_bytes"] ==
        std::uint64_t{141} << 30);
}

TEST_CASE("status says by which rule the use of a GPU by others is seen") {
  FakeDaemon daemon;
  daemon.scripts.get_status = [] {
    v1::GetStatusReply status;
    *status.add_devices() = h200();
    status.mutable_devices(0)->set_offered(true);
    status.mutable_devices(0)->set_consent("idle (memory and utilization)");
    return status;
  };
  CHECK_THAT(ctl(daemon, {"status"}).out, Catch::Contains("idle (memory and utilization)"));
  CHECK(Json::parse(ctl(daemon, {"status", "--json"}).out)["devices"][0]["consent"] ==
        "idle (memory and utilization)");
}

TEST_CASE("health waits for the agent that the daemon has started") {
  FakeDaemon daemon;
  std::atomic<int> asked = 0;
  daemon.scripts.get_status = [&] {
    v1::GetStatusReply status;
    status.set_agent_expected(++asked < 3);
    return status;
  };
  CHECK(ctl(daemon, {"health"}).exit_code == 0);
  CHECK(asked == 0);
  CHECK(ctl(daemon, {"health", "--wait", "20"}).out == "serving\n");
  CHECK(asked == 3);
}

TEST_CASE("health waits for a daemon as long as --wait says") {
  const TempDir folder;
  const auto begun = std::chrono::steady_clock::now();
  const ProgramResult result =
      ctl("unix://" + (folder.path() / "no.sock").string(), {"health", "--wait", "1"});
  CHECK(std::chrono::steady_clock::now() - begun >= std::chrono::milliseconds(800));
  CHECK(result.exit_code == 3);
  CHECK_THAT(result.err,
             Catch::EndsWith("no daemon answers there (there is no such socket). Start one with `cubind &`, "
                             "or name another daemon's address by CUBIND_ADDRESS\n"));
}

TEST_CASE("health does not ask beyond the time that --wait gives") {
  FakeDaemon daemon;
  daemon.scripts.get_status = [] {
    std::this_thread::sleep_for(std::chrono::seconds(4));
    return v1::GetStatusReply();
  };
  const ProgramResult result = ctl(daemon, {"health", "--wait", "1"});
  CHECK(result.exit_code == 3);
  CHECK_THAT(result.err, Catch::Contains("the daemon there does not answer in time"));
}

TEST_CASE("health notices a daemon that comes while it waits") {
  FakeDaemon daemon;
  daemon.scripts.get_status = [] { return v1::GetStatusReply(); };
  const TempDir folder;
  const std::filesystem::path socket = folder.path() / "late.sock";
  std::jthread comes([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    std::filesystem::create_symlink(daemon.address().substr(7), socket);
  });
  CHECK(ctl("unix://" + socket.string(), {"health", "--wait", "3"}).out == "serving\n");
}

TEST_CASE("jobs lists what runs and with all what has ended") {
  FakeDaemon daemon;
  bool all = false;
  daemon.scripts.list_jobs = [&](bool include_ended) {
    all = include_ended;
    v1::ListJobsReply reply;
    *reply.add_jobs() = job("j1");
    return reply;
  };
  CHECK_THAT(ctl(daemon, {"jobs"}).out,
             Catch::Contains("j1") && Catch::Contains("running") && Catch::Contains("4/10      2.3  "));
  CHECK_FALSE(all);
  CHECK(Json::parse(ctl(daemon, {"jobs", "--all", "--json"}).out)["jobs"][0]["stage"] == "screening");
  CHECK(all);
}

TEST_CASE("jobs says that none is open and how to list the others") {
  FakeDaemon daemon;
  daemon.scripts.list_jobs = [](bool) { return v1::ListJobsReply(); };
  CHECK(ctl(daemon, {"jobs"}).out == "No job is open; `cubindctl jobs --all` lists those that have ended.\n");
  CHECK(Json::parse(ctl(daemon, {"jobs", "--json"}).out)["jobs"].empty());
}

TEST_CASE("jobs tells tuning jobs from compile jobs") {
  FakeDaemon daemon;
  v1::ListJobsReply reply;
  *reply.add_jobs() = job("j1");
  *reply.add_jobs() = job("j2");
  reply.mutable_jobs(1)->set_kind(v1::Job::COMPILE_WINNER);
  daemon.scripts.list_jobs = [&](bool) { return reply; };
  CHECK_THAT(ctl(daemon, {"jobs"}).out, Catch::StartsWith("JOB  KIND     STATE") &&
                                            Catch::Contains("\nj1   tune     running") &&
                                            Catch::Contains("\nj2   compile  running"));
}

TEST_CASE("jobs tells what a job was asked for where that is not the default") {
  FakeDaemon daemon;
  v1::ListJobsReply reply;
  *reply.add_jobs() = job("j1");
  *reply.add_jobs() = job("j2");
  reply.mutable_jobs(1)->mutable_policy()->set_warm_l2(true);
  reply.mutable_jobs(1)->mutable_numerics()->set_kind(v1::Numerics::INVARIANT);
  reply.mutable_jobs(1)->mutable_numerics()->set_invariant_dim("N");
  reply.mutable_jobs(1)->set_namespace_("nightly");
  daemon.scripts.list_jobs = [&](bool) { return reply; };
  CHECK_THAT(ctl(daemon, {"jobs"}).out,
             Catch::Contains("  2.3  screening\n") &&
                 Catch::Contains("  2.3  warm,stream; invariant:N; namespace nightly; screening\n"));
  const Json jobs = Json::parse(ctl(daemon, {"jobs", "--json"}).out)["jobs"];
  CHECK(jobs[0]["numerics"] == "tolerance");
  CHECK(jobs[1]["policy"] == "warm,stream");
  CHECK(jobs[1]["numerics"] == "invariant:N");
  CHECK(jobs[1]["namespace"] == "nightly");
}

TEST_CASE("cancel names each job and an unknown one ends with 4") {
  FakeDaemon daemon;
  daemon.scripts.cancel_job = [](const std::string& id) {
    if (id != "j1") {
      throw Error(ErrorCode::NotFound, "id", "there is no job \"" + id + "\"");
    }
    v1::Job cancelled = job(id);
    cancelled.set_state(v1::Job::CANCELLED);
    return cancelled;
  };
  CHECK(ctl(daemon, {"cancel", "j1"}).out == "j1: cancelled\n");
  CHECK(ctl(daemon, {"cancel", "j2"}).exit_code == 4);
}

TEST_CASE("status says how to name a toolkit where the agents have no NVRTC") {
  FakeDaemon daemon;
  v1::GetStatusReply status;
  daemon.scripts.get_status = [&] { return status; };
  CHECK_THAT(ctl(daemon, {"status"}).out, Catch::Contains("toolchains  none: no agent is connected"));
  status.set_agents(1);
  CHECK_THAT(ctl(daemon, {"status"}).out,
             Catch::Contains("toolchains  none: name a CUDA toolkit by CUBIND_CUDA_HOME"));
  status.add_toolchains("nvrtc 13.0");
  CHECK_THAT(ctl(daemon, {"status"}).out, Catch::Contains("toolchains  nvrtc 13.0"));
}

TEST_CASE("status tells of an agent without a GPU why it has none") {
  FakeDaemon daemon;
  daemon.scripts.get_status = [] {
    v1::GetStatusReply status;
    status.add_no_device_because("the driver shows no GPU");
    return status;
  };
  CHECK_THAT(ctl(daemon, {"status"}).out, Catch::Contains("no GPU      the driver shows no GPU\n"));
  CHECK(Json::parse(ctl(daemon, {"status", "--json"}).out)["no_device_because"].size() == 1);
}

TEST_CASE("kernels that callers have defined are counted, and listed when they are asked for") {
  FakeDaemon daemon;
  daemon.scripts.list_kernels = [](const v1::ListKernelsRequest& request) {
    v1::ListKernelsReply reply;
    reply.add_kernels()->set_name(request.defined() ? "rows_0123" : "scale");
    reply.set_defined(37);
    return reply;
  };
  CHECK_THAT(ctl(daemon, {"kernels"}).out,
             Catch::Contains("scale") &&
                 Catch::Contains("kernels that callers have defined: 37, listed with --defined\n"));
  const std::string defined = ctl(daemon, {"kernels", "--defined"}).out;
  CHECK_THAT(defined, Catch::Contains("rows_0123") && !Catch::Contains("with --defined"));
  CHECK(Json::parse(ctl(daemon, {"kernels", "--json"}).out)["defined"] == 37);
}

TEST_CASE("what others have named moves no cursor in any command's output") {
  FakeDaemon daemon;
  const std::string evil = "\x1b]0;title\x07\x1b[2J";
  daemon.scripts.list_kernels = [&](const v1::ListKernelsRequest&) {
    v1::ListKernelsReply reply;
    reply.add_kernels()->set_name("scale" + evil);
    reply.add_kernels()->set_error(evil + ".json: is no JSON");
    return reply;
  };
  daemon.scripts.get_status = [&] {
    v1::GetStatusReply status;
    status.set_store_path("/var/" + evil);
    status.add_no_device_because(evil);
    return status;
  };
  daemon.scripts.list_jobs = [&](bool) {
    v1::ListJobsReply reply;
    *reply.add_jobs() = job("j1");
    reply.mutable_jobs(0)->set_state(v1::Job::FAILED);
    reply.mutable_jobs(0)->set_error(evil);
    return reply;
  };
  daemon.scripts.check_kernel = [&](const v1::CheckKernelRequest&) {
    v1::CheckKernelReply reply;
    reply.add_warnings(evil);
    return reply;
  };
  daemon.scripts.get_variant = [&](const v1::GetVariantRequest&) {
    v1::GetVariantReply reply = sample_reply({{{"N", 8}, {"D", 8}}, {{"T", DType::F16}}, {}, ""}, "cubin");
    reply.set_why(evil);
    return reply;
  };
  const std::string file = (source_dir() / "variants/vector_add/vector_add.json").string();
  const std::vector<std::vector<std::string>> commands = {
      {"kernels"},
      {"status"},
      {"jobs", "--all"},
      {"kernels", "check", file, "--problem", "N=8,T=f32"},
      {"get", "scale", "--problem", "N=8,D=8,T=f16", "--device", "x"},
      {"get", "scale" + evil, "--problem", "N=8,D=8,T=f16" + evil, "--device", "x"}};
  for (const std::vector<std::string>& command : commands) {
    const ProgramResult result = ctl(daemon, command);
    const std::string told = result.out + result.err;
    INFO(command[0] << ": " << told);
    CHECK_THAT(told, Catch::Contains("[2J"));
    CHECK(told.find_first_of("\x1b\x07") == std::string::npos);
  }
}

TEST_CASE("status tells store and jobs and other daemons and a read only store and damaged rows") {
  FakeDaemon daemon;
  daemon.scripts.get_status = [] {
    v1::GetStatusReply status;
    status.set_version("0.1.0");
    status.set_store_path("/var/lib/cubind/cubind.db");
    status.set_store_bytes(4096);
    status.set_records(318);
    status.set_shipped_records(317);
    status.set_artifacts(2);
    status.set_jobs_running(1);
    status.set_read_only(true);
    status.set_read_only_reason("disk full");
    status.set_damaged_rows(2);
    status.add_peers("cubind pid 7 at 10.0.0.2:7400");
    status.set_store_lag_ms(3400);
    *status.add_devices() = h200();
    return status;
  };
  CHECK_THAT(
      ctl(daemon, {"status"}).out,
      Catch::Contains("cubind 0.1.0") && Catch::Contains("1 running") &&
          Catch::Contains("holds       0 kernels, 1 record and 317 that came with cubind, 2 artifacts\n") &&
          Catch::Contains("READ ONLY   disk full") && Catch::Contains("DAMAGED     2 rows") &&
          Catch::Contains("shared with cubind pid 7 at 10.0.0.2:7400") && Catch::Contains("read 3 s ago") &&
          Catch::Contains("nvidia-h200"));
  CHECK(Json::parse(ctl(daemon, {"status", "--json"}).out)["store_path"] == "/var/lib/cubind/cubind.db");
}

TEST_CASE("status counts nothing in a store that is away") {
  FakeDaemon daemon;
  daemon.scripts.get_status = [] {
    v1::GetStatusReply status;
    status.set_store_path("postgresql://cubind@db/cubind");
    status.set_store_lag_ms(3400);
    status.set_records(317);
    status.set_read_only(true);
    status.set_read_only_reason("Connection refused");
    return status;
  };
  const std::string out = ctl(daemon, {"status"}).out;
  CHECK_THAT(out, Catch::Contains("317 records") && Catch::Contains("shared with no other daemon now\n"));
  CHECK_THAT(out, !Catch::Contains(" 0 B") && !Catch::Contains("artifacts"));
}

}  // namespace cubind::test
