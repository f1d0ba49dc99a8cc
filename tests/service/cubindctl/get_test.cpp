#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "tests/fakes/sample_reply.hpp"
#include "tests/service/cubindctl/ctl.hpp"

namespace cubind::test {
namespace {

const Problem kProblem{{{"N", 1024}, {"D", 4096}}, {{"T", DType::F16}}, {}, ""};

class GetFixture {
 protected:
  GetFixture() {
    daemon_.scripts.get_variant = [this](const v1::GetVariantRequest& request) {
      asked_ = request;
      return reply_;
    };
  }
  ProgramResult get(std::vector<std::string> more) {
    std::vector<std::string> arguments = {"get", "scale", "--problem", "N=1024,D=4096,T=f16"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return ctl(daemon_, arguments);
  }
  FakeDaemon daemon_;
  TempDir folder_;
  v1::GetVariantRequest asked_;
  v1::GetVariantReply reply_ = sample_reply(kProblem, "cubin");
};

}  // namespace

TEST_CASE_METHOD(GetFixture, "get prints configuration match evidence and where it was measured") {
  const ProgramResult result = get({"--device", "nvidia-h200"});
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.out, Catch::Contains("scale N=1024,D=4096,T=f16 on nvidia-h200") &&
                             Catch::Contains("THREADS=256,VECTOR=4") && Catch::Contains("exact") &&
                             Catch::Contains("measured: nvidia-h200, driver 580.159.04, nvrtc 13.0") &&
                             Catch::Contains("24.10 us [24.00, 24.25], 30 samples by cupti at 1980 MHz"));
  CHECK(asked_.device().label() == "nvidia-h200");
}

TEST_CASE_METHOD(GetFixture, "get says which other problem was measured") {
  reply_.mutable_provenance()->mutable_measured_problem()->mutable_dims(0)->set_value(4096);
  CHECK_THAT(get({"--device", "nvidia-h200"}).out,
             Catch::Contains("measured: nvidia-h200 at N=4096,D=4096,T=f16, driver 580.159.04"));
}

TEST_CASE_METHOD(GetFixture, "get says which launches use the tensor cores") {
  const auto use_tensor_cores = [&](const char* symbol) {
    v1::EntryResources& entry = *reply_.mutable_artifact()->add_entries();
    entry.set_entry_symbol(symbol);
    entry.set_tensor_cores(true);
  };
  CHECK_THAT(get({"--device", "nvidia-h200"}).out, Catch::Contains("  tensor cores  no\n"));
  use_tensor_cores("_Z6finish");
  CHECK_THAT(get({"--device", "nvidia-h200"}).out, Catch::Contains("  tensor cores  in finish<256>\n"));
  use_tensor_cores("_Z10scale_rows");
  CHECK_THAT(get({"--device", "nvidia-h200"}).out, Catch::Contains("  tensor cores  yes\n"));
}

TEST_CASE_METHOD(GetFixture, "get writes the cubin in addition to the printed answer") {
  const std::string file = (folder_.path() / "k.cubin").string();
  CHECK(get({"--device", "nvidia-h200", "-o", file}).exit_code == 0);
  CHECK(read_file(file) == "cubin");
}

TEST_CASE_METHOD(GetFixture, "get asks for the bits that its options name") {
  get({"--device", "nvidia-h200"});
  CHECK(asked_.numerics().kind() == v1::Numerics::TOLERANCE);
  get({"--device", "nvidia-h200", "--reproducible"});
  CHECK(asked_.numerics().kind() == v1::Numerics::REPRODUCIBLE);
  get({"--device", "nvidia-h200", "--invariant", "N"});
  CHECK(asked_.numerics().kind() == v1::Numerics::INVARIANT);
  CHECK(asked_.numerics().invariant_dim() == "N");
  CHECK(get({"--invariant", ""}).exit_code == 2);
  const ProgramResult both = get({"--reproducible", "--invariant", "N"});
  CHECK(both.exit_code == 2);
  CHECK_THAT(both.err, Catch::Contains("excludes"));
}

TEST_CASE_METHOD(GetFixture, "get as JSON is one document with the launch plan") {
  const ProgramResult result = get({"--device", "nvidia-h200", "--json"});
  const Json json = Json::parse(result.out);
  CHECK(json["kernel"] == "scale");
  CHECK(json["launches"][0]["grid"] == Json({4096, 1, 1}));
  CHECK(json["launches"][0]["parameters"][3]["name"] == "alpha");
}

TEST_CASE_METHOD(GetFixture, "get of several problems prints a table and as JSON a list") {
  const ProgramResult result = get({"--problem", "N=1024,D=4096,T=float16", "--device", "nvidia-h200"});
  CHECK_THAT(result.out, Catch::StartsWith("PROBLEM") && Catch::Contains("exact  measured    24.10    5 B"));
  const Json json = Json::parse(get({"--problem", "N=1024,D=4096,T=f16", "--device", "x", "--json"}).out);
  CHECK(json["answers"].size() == 2);
  CHECK(get({"--problem", "N=1024,D=4096,T=f16", "-o", "k.cubin"}).exit_code == 2);
}

TEST_CASE_METHOD(GetFixture, "get says why nothing better answers") {
  reply_.set_why("the job failed: no configuration\nsurvived");
  const std::string line = "the job failed: no configuration survived\n";
  CHECK_THAT(get({"--device", "x"}).out, Catch::EndsWith("  why           " + line));
  CHECK(Json::parse(get({"--device", "x", "--json"}).out)["why"] ==
        "the job failed: no configuration\nsurvived");
  const ProgramResult several = get({"--problem", "N=1024,D=4096,T=f16", "--device", "x"});
  CHECK_THAT(several.err, Catch::StartsWith("N=1024,D=4096,T=f16: " + line));
  CHECK_THAT(several.out, !Catch::Contains("failed"));
}

TEST_CASE_METHOD(GetFixture, "a hit has no reason") {
  CHECK_THAT(get({"--device", "x"}).out, !Catch::Contains("  why "));
  CHECK_FALSE(Json::parse(get({"--device", "x", "--json"}).out).contains("why"));
}

TEST_CASE_METHOD(GetFixture, "a wait that outlasts the timeout says that the job goes on and ends with 6") {
  daemon_.scripts.get_variant = [](const v1::GetVariantRequest&) {
    std::this_thread::sleep_for(std::chrono::seconds(2));
    return v1::GetVariantReply();
  };
  const ProgramResult result = get({"--device", "x", "--on-miss", "wait", "--timeout", "0.5"});
  CHECK(result.exit_code == 6);
  CHECK_THAT(result.err, Catch::Contains("N=1024,D=4096,T=f16: had not been measured after 0.5 s") &&
                             Catch::Contains("`cubindctl jobs`"));
}

TEST_CASE_METHOD(GetFixture,
                 "a wait for a device that no agent offers lasts until the measurement or ends with 6") {
  std::atomic<int> asked = 0;
  std::atomic<bool> ends = false;
  daemon_.scripts.get_variant = [&](const v1::GetVariantRequest&) {
    v1::GetVariantReply reply = sample_reply(kProblem, "cubin");
    if (++asked == 1) {
      reply.mutable_provenance()->add_departures(v1::DEFAULT_CONFIGURATION);
      reply.set_job_id("j1");
      reply.set_job_state("no_device");
      reply.set_why("no agent offers a GPU; the job begins as soon as one does");
    }
    return reply;
  };
  daemon_.scripts.watch_job = [&](const std::string& id, const Scripts::Emit& emit) {
    v1::TuneEvent event;
    event.mutable_job()->set_id(id);
    while (!ends && emit(event)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  };
  const ProgramResult late = get({"--device", "x", "--on-miss", "wait", "--timeout", "0.5"});
  CHECK(late.exit_code == 6);
  CHECK(late.out.empty());
  CHECK_THAT(late.err,
             Catch::Contains("had not been measured after 0.5 s (--timeout): no agent offers a GPU"));
  asked = 0;
  ends = true;
  const ProgramResult measured = get({"--device", "x", "--on-miss", "wait"});
  CHECK(measured.exit_code == 0);
  CHECK(asked == 2);
  CHECK_THAT(measured.out, Catch::Contains("exact"));
}

TEST_CASE_METHOD(GetFixture, "a wait whose job failed prints what there is and ends with 5") {
  reply_.mutable_provenance()->add_departures(v1::DEFAULT_CONFIGURATION);
  reply_.set_job_id("j1");
  reply_.set_job_state("failed");
  reply_.set_why("the job failed: no configuration survived");
  const ProgramResult result = get({"--device", "x", "--on-miss", "wait"});
  CHECK(result.exit_code == 5);
  CHECK_THAT(result.out, Catch::Contains("no configuration survived"));
  CHECK(get({"--device", "x"}).exit_code == 0);
}

TEST_CASE_METHOD(GetFixture, "get passes on how far it goes along") {
  get({"--device", "x", "--on-miss", "fail", "--tune", "never", "--accept", "bucket+stale"});
  CHECK(asked_.on_miss() == v1::FAIL);
  CHECK(asked_.tune() == v1::NEVER);
  CHECK(asked_.accept_size() == 2);
}

TEST_CASE_METHOD(GetFixture, "on a machine without a GPU the one device that agents offer is asked for") {
  daemon_.scripts.list_devices = [] {
    v1::ListDevicesReply reply;
    reply.add_devices()->set_label("nvidia-h100");
    v1::DeviceClass& offered = *reply.add_devices();
    offered.set_label("nvidia-h200");
    offered.set_offered(true);
    return reply;
  };
  CHECK(get({}).exit_code == 0);
  CHECK(asked_.device().label() == "nvidia-h200");
}

TEST_CASE_METHOD(GetFixture, "without a GPU and without an offered device the known ones are listed") {
  daemon_.scripts.list_devices = [] {
    v1::ListDevicesReply reply;
    reply.add_devices()->set_label("nvidia-h100");
    return reply;
  };
  const ProgramResult result = get({});
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.err, Catch::Contains("--device") && Catch::Contains("nvidia-h100"));
}

TEST_CASE_METHOD(GetFixture, "a miss with on-miss fail ends with 4") {
  daemon_.scripts.get_variant = [](const v1::GetVariantRequest&) -> v1::GetVariantReply {
    throw Error(ErrorCode::NotFound, "", "no record");
  };
  CHECK(get({"--device", "x", "--on-miss", "fail"}).exit_code == 4);
}

TEST_CASE_METHOD(GetFixture, "a problem that does not parse ends with 2 and names the part") {
  const ProgramResult result = ctl(daemon_, {"get", "scale", "--problem", "N=1024,T=bf61", "--device", "x"});
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.err, Catch::Contains("T=bf61") && Catch::Contains("bf16"));
}

TEST_CASE_METHOD(GetFixture, "every line about a replay device says so") {
  reply_.set_device("replay-1a2b3c4d");
  std::istringstream lines(get({"--device", "replay-1a2b3c4d"}).out);
  for (std::string line; std::getline(lines, line);) {
    CHECK(line.starts_with("replayed: "));
  }
}

TEST_CASE_METHOD(GetFixture, "without a GPU an unknown kernel is the first error") {
  daemon_.scripts.list_devices = [] { return v1::ListDevicesReply(); };
  daemon_.scripts.get_variant = [](const v1::GetVariantRequest& request) -> v1::GetVariantReply {
    throw Error(ErrorCode::NotFound, "kernel", quoted(request.kernel()) + " is not known");
  };
  const ProgramResult result = get({});
  CHECK(result.exit_code == 4);
  CHECK_THAT(result.err, Catch::Contains("\"scale\" is not known") && !Catch::Contains("GPU"));
}

}  // namespace cubind::test
