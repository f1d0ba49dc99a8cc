#include <catch2/catch.hpp>
#include <csignal>
#include <thread>

#include "base/error.hpp"
#include "base/file.hpp"
#include "base/json.hpp"
#include "tests/fakes/sample_reply.hpp"
#include "tests/service/cubindctl/ctl.hpp"

namespace cubind::test {
namespace {

v1::TuneEvent event(const v1::Problem& problem, const std::string& id, v1::Job::State state) {
  v1::TuneEvent event;
  event.mutable_job()->set_id(id);
  event.mutable_job()->set_kernel("scale");
  *event.mutable_job()->mutable_problem() = problem;
  event.mutable_job()->set_device("nvidia-h200");
  event.mutable_job()->set_state(state);
  event.mutable_job()->set_stage("screening");
  if (state == v1::Job::DONE) {
    const v1::GetVariantReply reply =
        sample_reply({{{"N", 1024}, {"D", 8}}, {{"T", DType::F16}}, {}, ""}, "");
    *event.mutable_winner() = reply.configuration();
    *event.mutable_provenance() = reply.provenance();
  }
  return event;
}

struct TuneFixture {
  TuneFixture() {
    daemon.scripts.tune = [this](const v1::TuneRequest& request, const Scripts::Emit& emit) {
      asked = request;
      for (int i = 0; i < request.problems_size(); ++i) {
        const std::string id = "j" + std::to_string(i + 1);
        emit(event(request.problems(i), id, v1::Job::RUNNING));
        emit(event(request.problems(i), id, end));
      }
    };
  }
  // Tells of a running job until the caller has gone.
  void never_end() {
    daemon.scripts.tune = [](const v1::TuneRequest& request, const Scripts::Emit& emit) {
      while (emit(event(request.problems(0), "j1", v1::Job::RUNNING))) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    };
  }
  std::string write(const std::string& text) {
    std::string file = (folder.path() / "shapes.json").string();
    write_file_atomic(file, text);
    return file;
  }
  FakeDaemon daemon;
  TempDir folder;
  v1::TuneRequest asked;
  v1::Job::State end = v1::Job::DONE;
};

}  // namespace

TEST_CASE_METHOD(TuneFixture, "tune prints plain lines where there is no terminal") {
  const ProgramResult result = ctl(daemon, {"tune", "scale", "--problem", "N=1024,D=8,T=f16"});
  CHECK(result.exit_code == 0);
  CHECK(result.out.find('\r') == std::string::npos);
  CHECK_THAT(result.out,
             Catch::Contains("scale N=1024,D=8,T=f16: screening (job j1)\n") &&
                 Catch::Contains("24.10 us [24.00, 24.25], 1.18x the default, THREADS=256,VECTOR=4"));
}

TEST_CASE_METHOD(TuneFixture, "tune takes a shape list and problems together") {
  const std::string file =
      write(R"({"kernel": "scale", "problems": [{"N": 1, "D": 8, "T": "torch.float16"}]})");
  const ProgramResult result =
      ctl(daemon, {"tune", "--shapes", file, "--problem", "N=2,D=8,T=f16", "--retune"});
  CHECK(result.exit_code == 0);
  REQUIRE(asked.problems_size() == 2);
  CHECK(asked.problems(0).types(0).type() == "f16");
  CHECK(asked.kernel() == "scale");
  CHECK(asked.retune());
}

TEST_CASE_METHOD(TuneFixture, "a shape list for another kernel is refused at its pointer") {
  const std::string file = write(R"({"kernel": "scale", "problems": [{"N": 1}]})");
  const ProgramResult result = ctl(daemon, {"tune", "rmsnorm_forward", "--shapes", file});
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.err, Catch::Contains("shapes.json /problems/0: is for \"scale\", not for \"rmsnorm"));
}

TEST_CASE_METHOD(TuneFixture, "a list for several kernels is submitted as a whole and then followed") {
  const std::string file = (folder.path() / "shapes.jsonl").string();
  write_file_atomic(file,
                    "{\"kernel\": \"scale\", \"N\": 1, \"D\": 8, \"T\": \"f16\"}\n"
                    "{\"kernel\": \"add\", \"N\": 2, \"T\": \"f16\"}\n");
  std::vector<std::string> calls;
  daemon.scripts.tune = [&](const v1::TuneRequest& request, const Scripts::Emit& emit) {
    calls.push_back((request.detach() ? "submit " : "follow ") + request.kernel());
    emit(event(request.problems(0), "j-" + request.kernel(), v1::Job::QUEUED));
  };
  daemon.scripts.watch_job = [&](const std::string& id, const Scripts::Emit& emit) {
    calls.push_back("watch " + id);
    emit(event(sample_reply({{{"N", 8}, {"D", 8}}, {{"T", DType::F16}}, {}, ""}, "").problem(), id,
               v1::Job::DONE));
  };
  const Json json = Json::parse(ctl(daemon, {"tune", "--shapes", file, "--json"}).out);
  CHECK(calls == std::vector<std::string>{"submit scale", "submit add", "watch j-scale", "watch j-add"});
  CHECK(json["jobs"].size() == 2);
  calls.clear();
  CHECK(ctl(daemon, {"tune", "--shapes", file, "--detach"}).exit_code == 0);
  CHECK(calls.size() == 2);
}

TEST_CASE_METHOD(TuneFixture,
                 "what the daemon refuses of a problem is reported at its place in the shape list") {
  daemon.scripts.tune = [](const v1::TuneRequest&, const Scripts::Emit&) {
    throw Error(ErrorCode::InvalidArgument, "problems[1].dims", "\"D\" is missing");
  };
  const std::string file = (folder.path() / "shapes.jsonl").string();
  write_file_atomic(file, "{\"N\": 1, \"T\": \"f16\"}\n\n{\"N\": 2, \"T\": \"f16\"}\n");
  const ProgramResult listed = ctl(daemon, {"tune", "scale", "--shapes", file});
  CHECK(listed.exit_code == 2);
  CHECK_THAT(listed.err, Catch::EndsWith("shapes.jsonl line 3: \"D\" is missing\n"));
  const ProgramResult given = ctl(daemon, {"tune", "scale", "--problem", "N=1", "--problem", "N=2"});
  CHECK_THAT(given.err, Catch::EndsWith("--problem N=2: \"D\" is missing\n"));
}

TEST_CASE_METHOD(TuneFixture,
                 "a kernel that the daemon does not know is reported where the shape list names it") {
  daemon.scripts.tune = [](const v1::TuneRequest& request, const Scripts::Emit&) {
    if (request.kernel() == "sclae") {
      throw Error(ErrorCode::NotFound, "kernel", "\"sclae\" is not known");
    }
  };
  const std::string file = (folder.path() / "shapes.jsonl").string();
  write_file_atomic(file, "{\"kernel\": \"add\", \"N\": 1}\n{\"kernel\": \"sclae\", \"N\": 1}\n");
  const ProgramResult listed = ctl(daemon, {"tune", "--shapes", file, "--detach"});
  CHECK(listed.exit_code == 4);
  CHECK_THAT(listed.err, Catch::EndsWith("shapes.jsonl line 2 /kernel: \"sclae\" is not known\n"));
  const ProgramResult given = ctl(daemon, {"tune", "sclae", "--problem", "N=1", "--detach"});
  CHECK(given.err == "cubindctl: kernel: \"sclae\" is not known\n");
}

TEST_CASE_METHOD(TuneFixture, "a failed job ends with 5") {
  end = v1::Job::FAILED;
  CHECK(ctl(daemon, {"tune", "scale", "--problem", "N=1,D=8,T=f16"}).exit_code == 5);
}

TEST_CASE_METHOD(TuneFixture, "tune as JSON is one document with a job for each problem") {
  const ProgramResult result =
      ctl(daemon, {"tune", "scale", "--problem", "N=1,D=8,T=f16", "--problem", "N=2,D=8,T=f16", "--json"});
  const Json json = Json::parse(result.out);
  CHECK(json["detached"] == false);
  REQUIRE(json["jobs"].size() == 2);
  CHECK(json["jobs"][1]["provenance"]["time_us"] == 24.1);
}

TEST_CASE_METHOD(TuneFixture, "with detach the ids are printed and the exit code is 0") {
  daemon.scripts.tune = [&](const v1::TuneRequest& request, const Scripts::Emit& emit) {
    asked = request;
    emit(event(request.problems(0), "j7", v1::Job::QUEUED));
  };
  const ProgramResult result = ctl(daemon, {"tune", "scale", "--problem", "N=1,D=8,T=f16", "--detach"});
  CHECK(result.exit_code == 0);
  CHECK(asked.detach());
  CHECK_THAT(result.out, Catch::Contains("cubindctl jobs --watch j7"));
}

TEST_CASE_METHOD(TuneFixture, "Ctrl-C detaches and prints the job's id and how to watch it") {
  never_end();
  ProgramRun run;
  run.program = "cubindctl";
  run.arguments = {"tune", "scale", "--problem", "N=1,D=8,T=f16"};
  run.environment = {"CUBIND_ADDRESS=" + daemon.address()};
  run.until = "screening";
  run.then = [](int pid) { kill(pid, SIGINT); };
  const ProgramResult result = run_program(run);
  CHECK(result.exit_code == 130);
  CHECK_THAT(result.err, Catch::Contains("Detached") && Catch::Contains("  cubindctl jobs --watch j1\n") &&
                             Catch::Contains("  cubindctl cancel j1\n"));
}

TEST_CASE_METHOD(TuneFixture, "a timeout of tune ends with 6") {
  never_end();
  CHECK(ctl(daemon, {"tune", "scale", "--problem", "N=1,D=8,T=f16", "--timeout", "0.3"}).exit_code == 6);
}

TEST_CASE_METHOD(TuneFixture, "jobs with watch follows one job to its end") {
  daemon.scripts.watch_job = [&](const std::string& id, const Scripts::Emit& emit) {
    v1::Problem problem = sample_reply({{{"N", 8}, {"D", 8}}, {{"T", DType::F16}}, {}, ""}, "").problem();
    emit(event(problem, id, v1::Job::RUNNING));
    emit(event(problem, id, v1::Job::DONE));
  };
  const ProgramResult result = ctl(daemon, {"jobs", "--watch", "j1"});
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.out, Catch::Contains("24.10 us"));
  CHECK(Json::parse(ctl(daemon, {"jobs", "--watch", "j1", "j2", "--json"}).out)["jobs"].size() == 2);
}

}  // namespace cubind::test
