#include <catch2/catch.hpp>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/file.hpp"
#include "client/web/http_server.hpp"
#include "client/web/site.hpp"
#include "plan/wire.hpp"
#include "tests/fakes/browser.hpp"
#include "tests/fakes/fake_daemon.hpp"
#include "tests/support/facts.hpp"
#include "tests/support/manual_clock.hpp"

namespace cubind::test {
namespace {

using Catch::Contains;

const std::string kMarkup = "<img src=\"http://127.0.0.1:9/x\" onerror=\"throw 1\">";

/// Two seconds pass between two looks: a browser's virtual time outruns the real one.
class HurriedClock final : public Clock {
 public:
  std::chrono::steady_clock::time_point steady_now() const override {
    return std::chrono::steady_clock::time_point(std::chrono::seconds(2) * ++looks_);
  }
  std::chrono::system_clock::time_point wall_now() const override { return RealClock().wall_now(); }

 private:
  mutable std::atomic<int> looks_{0};
};

/// The pages of a daemon without jobs, wants and records, unless a test says otherwise.
struct Pages {
  Pages() {
    daemon.scripts.get_status = [this] { return status; };
    daemon.scripts.list_jobs = [this](bool) { return jobs; };
    daemon.scripts.list_wanted = [this] { return wanted; };
    daemon.scripts.list_records = [this](const v1::ListRecordsRequest& request) { return listed(request); };
  }

  Shown open(const std::string& path) const {
    return show_address("http://127.0.0.1:" + std::to_string(server.port()) + path);
  }

  v1::ListRecordsReply listed(const v1::ListRecordsRequest& request) const {
    v1::ListRecordsReply reply;
    const std::vector<v1::ListedRecord>& asked = request.superseded() ? superseded : records;
    const std::size_t end = std::min<std::size_t>(asked.size(), request.after() + 5000);
    for (std::size_t i = request.after(); i < end; ++i) {
      *reply.add_records() = asked[i];
    }
    reply.set_last(end);
    return reply;
  }

  v1::ListedRecord& add_record(const std::string& kernel, std::int64_t n, double time_us) {
    v1::ListedRecord& record = records.emplace_back();
    record.set_kernel(kernel);
    v1::Provenance& provenance = *record.mutable_provenance();
    to_wire(Problem{{{"N", n}}, {}, {}, ""}, *provenance.mutable_measured_problem());
    to_wire(Configuration{{{"THREADS", 128}}}, *record.mutable_configuration());
    provenance.set_evidence(v1::MEASURED);
    provenance.set_measured_device("nvidia-h200");
    provenance.mutable_timing()->set_median_us(time_us);
    return record;
  }

  v1::Job& add_job(const std::string& id, v1::Job::State state) {
    v1::Job& job = *jobs.add_jobs();
    job.set_id(id);
    job.set_kernel("scale");
    job.set_device("nvidia-h200");
    job.set_state(state);
    job.set_elapsed_ms(4000);
    return job;
  }

  FakeDaemon daemon;
  v1::GetStatusReply status;
  v1::ListJobsReply jobs;
  v1::ListWantedReply wanted;
  std::vector<v1::ListedRecord> records, superseded;
  HurriedClock clock;
  web::Snapshots snapshots{daemon.address(), clock};
  web::Site site{snapshots};
  web::HttpServer server{"0", [this](const web::Request& request) { return site.answer(request); }};
};

Shown check_open(const Pages& pages, const std::string& path) {
  INFO(path);
  Shown shown = pages.open(path);
  CHECK(shown.console == std::vector<std::string>{});
  CHECK_THAT(shown.main, !Contains(">nan") && !Contains("undefined") && !Contains("<img"));
  return shown;
}

}  // namespace

TEST_CASE_METHOD(Pages, "what was read with one token is on no page after another took its place") {
  const TempDir folder;
  const std::filesystem::path token = folder.path() / "token";
  write_file_atomic(token, "cubind_1_a");
  ::setenv("CUBIND_TOKEN_FILE", token.c_str(), 1);
  ManualClock still;
  web::Snapshots read_now(daemon.address(), still);
  web::Site pages(read_now);
  add_record("of_ann", 1, 1);
  add_job("ann", v1::Job::DONE);
  CHECK_THAT(pages.answer({"/records", {}}).body, Contains("of_ann"));
  records.clear();
  jobs.Clear();
  write_file_atomic(token, "cubind_2_b");
  still.advance(std::chrono::seconds(1));
  CHECK_THAT(pages.answer({"/records", {}}).body, !Contains("of_ann"));
  CHECK_THAT(pages.answer({"/jobs", {}}).body, !Contains("job?id=ann"));
  ::unsetenv("CUBIND_TOKEN_FILE");
}

TEST_CASE_METHOD(Pages, "a fault of the daemon is that of all who ask within a second") {
  ManualClock still;
  web::Snapshots read_now(daemon.address(), still);
  int asked = 0;
  daemon.scripts.get_status = [&]() -> v1::GetStatusReply {
    ++asked;
    throw Error(ErrorCode::Unavailable, "daemon", "is away");
  };
  CHECK_THROWS_WITH(read_now.now(), Contains("is away"));
  CHECK_THROWS_WITH(read_now.now(), Contains("is away"));
  CHECK(asked == 1);
  still.advance(std::chrono::seconds(1));
  CHECK_THROWS_WITH(read_now.now(), Contains("is away"));
  CHECK(asked == 2);
}

TEST_CASE_METHOD(Pages, "a report on a kernel that is not known names the pages that lead further") {
  daemon.scripts.list_kernels = [](const v1::ListKernelsRequest&) { return v1::ListKernelsReply(); };
  const web::Response page = site.answer({"/report", {{"kernel", "no_such"}}});
  CHECK(page.status == 404);
  CHECK_THAT(page.body,
             Contains("no_such&quot; is not known to the daemon; the page Kernels") && !Contains("--job"));
}

TEST_CASE_METHOD(Pages, "the pages of an empty store say what is missing") {
  if (!has_browser()) {
    return;
  }
  CHECK_THAT(check_open(*this, "/").main,
             Contains("No job is queued or running.") && Contains("No agent offers a GPU"));
  CHECK_THAT(check_open(*this, "/jobs").main, Contains("No job has run"));
  CHECK_THAT(check_open(*this, "/kernels").main, Contains("No kernel has a record"));
  CHECK_THAT(check_open(*this, "/wanted").main, Contains("Nothing is wanted"));
  CHECK_THAT(check_open(*this, "/records").main, Contains("No record is stored"));
}

TEST_CASE_METHOD(Pages, "records are rows a hundred at a time and counted by kernel") {
  if (!has_browser()) {
    return;
  }
  for (int i = 0; i < 100'000; ++i) {
    add_record(i % 2 == 0 ? "matmul" : "softmax", i, i);
  }
  while (!snapshots.now()->records.missing.empty()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const Shown shown = check_open(*this, "/records?sort=2&down=1");
  CHECK(count(shown.main, "<tr>") == 101);
  CHECK_THAT(shown.main, Contains("1 to 100 of 100000 rows") && Contains("aria-sort=\"descending\"") &&
                             Contains("99999.00"));
  CHECK_THAT(check_open(*this, "/records?words=SOFTMAX+n%3D9999").main, Contains("6 rows"));
  CHECK_THAT(check_open(*this, "/kernels").main,
             Contains("/report?kernel=matmul") && Contains("50000 of 50000"));
  for (const char* path : {"/audit?kernel=matmul", "/report?kernel=matmul"}) {
    CHECK_THAT(check_open(*this, path).main, Contains("matmul has 50000 records, and this page"));
  }
}

TEST_CASE_METHOD(Pages, "a kernel's stability tells how often a winner changed") {
  if (!has_browser()) {
    return;
  }
  add_record("scale", 4096, 12);
  superseded.swap(records);
  add_record("other", 4096, 30);
  add_record("scale", 4096, 10).mutable_configuration()->mutable_values(0)->set_value(256);
  add_record("scale", 8192, 20);
  CHECK_THAT(check_open(*this, "/stability?kernel=scale").main,
             Contains("Of 2 problems, 1 was measured more than once; the winner of 1 has changed.") &&
                 Contains(">1.200</td>") && Contains("THREADS=256") && !Contains("remarks") &&
                 Contains("<code>cubindctl report scale --stability</code>"));
  CHECK_THAT(open("/stability?kernel=scale").before,
             Contains("aria-current=\"true\">Kernels</a>") && Contains("href=\"/audit?kernel=scale\""));
}

TEST_CASE_METHOD(Pages, "causes are listed by how often they occur with what mends them") {
  if (!has_browser()) {
    return;
  }
  add_job("1", v1::Job::FAILED).set_error("no reference");
  v1::Want& want = *wanted.add_wants();
  want.set_kernel("softmax");
  want.set_device("nvidia-h200");
  want.set_count(7);
  const Shown shown = check_open(*this, "/");
  const std::size_t first = shown.main.find("7&nbsp;questions"),
                    second = shown.main.find("1&nbsp;failed&nbsp;job");
  CHECK(first < second);
  CHECK(second != std::string::npos);
  CHECK_THAT(shown.main, Contains("<code>cubindctl tune --wanted</code>") &&
                             Contains("scale: no reference") && Contains("<code>cubindctl tune scale"));
}

TEST_CASE_METHOD(Pages, "a running job has its progress and an ended one its stages") {
  if (!has_browser()) {
    return;
  }
  v1::Job& running = add_job("11", v1::Job::RUNNING);
  running.set_configurations(40);
  running.set_max_trials(40);
  running.set_stage("screening");
  running.set_configurations_done(10);
  *running.add_stages() = stage_time("screening", 3000);
  v1::Job& done = add_job("12", v1::Job::DONE);
  done.set_elapsed_ms(8000);
  to_wire(Problem{{{"N", 4096}}, {}, {}, ""}, *done.mutable_problem());
  add_record("scale", 4096, 10);
  *done.add_stages() = stage_time("compiling", 6000);
  CHECK_THAT(check_open(*this, "/").main,
             Contains("10 of 40") && Contains("about 12.0 s") && Contains("width=\"25%\""));
  CHECK_THAT(check_open(*this, "/job?id=12").main,
             Contains("75&nbsp;%") && Contains("--compile-jobs") &&
                 Contains("Its problem's record: THREADS=128, 10.00 µs."));
  CHECK_THAT(check_open(*this, "/job?id=11").main, Contains("as many trials as were asked for") &&
                                                       Contains("times each configuration a few times") &&
                                                       Contains(">3.000</td>") && Contains("other"));
  CHECK_THAT(check_open(*this, "/jobs").main, Contains("href=\"/job?id=12\">The longest: scale") &&
                                                  Contains("75&nbsp;% of it compiling") &&
                                                  Contains("screening 75&nbsp;%"));
  add_job("13", v1::Job::DONE).set_kind(v1::Job::COMPILE_WINNER);
  CHECK_THAT(check_open(*this, "/job?id=13").main, Contains(">compiling</td>") && Contains("100&nbsp;%") &&
                                                       !Contains("No configuration") && !Contains("0 of 0"));
  add_job("14", v1::Job::FAILED).set_error("no reference");
  CHECK_THAT(check_open(*this, "/job?id=14").main,
             Contains("Why did this job fail") && Contains("no reference") &&
                 Contains("<code>cubindctl tune scale") && !Contains("of it ") && !Contains("/report?job="));
}

TEST_CASE_METHOD(Pages, "the kernel to tune next is named, and what a GPU does") {
  if (!has_browser()) {
    return;
  }
  for (const std::uint64_t count : {7, 2}) {
    v1::Want& want = *wanted.add_wants();
    want.set_kernel(count == 7 ? "softmax" : "matmul");
    want.set_count(count);
  }
  v1::DeviceClass& device = *status.add_devices();
  device.set_label("nvidia-h200");
  device.set_offered(true);
  device.set_state("waiting_for_idle_gpu");
  device.set_temperature_c(83);
  device.set_throttled(true);
  v1::Job& job = add_job("15", v1::Job::WAITING_FOR_IDLE_GPU);
  job.set_note("process 4711 uses the GPU");
  CHECK_THAT(check_open(*this, "/kernels").main,
             Contains("softmax: 7 questions for 1 problem found no record."));
  CHECK_THAT(check_open(*this, "/").main, Contains("used by others: process 4711 uses the GPU") &&
                                              Contains("83 °C, throttled by heat or hardware"));
}

TEST_CASE_METHOD(
    Pages, "what was saved has its denominator and a training job its distance from the newest generation") {
  if (!has_browser()) {
    return;
  }
  status.mutable_generation()->set_number(9);
  status.mutable_saved()->set_since("2026-01-31T09:15:00.000Z");
  status.mutable_saved()->set_answers(41);
  status.mutable_saved()->set_timed(30);
  status.mutable_saved()->set_compile_ms(12'300);
  v1::PinnedJob& job = *status.add_pinned();
  job.set_job("llama-7b");
  job.set_generation(7);
  job.set_processes(8);
  const Shown shown = check_open(*this, "/");
  CHECK_THAT(shown.main, Contains("Since 2026-01-31 09:15 UTC, processes were spared 12.3 s of compiling") &&
                             Contains("for 30 of 41 answers"));
  CHECK_THAT(shown.main, Contains(">llama-7b</td>") && Contains(">8</td>") && Contains(">2</td>"));
}

TEST_CASE_METHOD(Pages, "names with markup are text on every page") {
  if (!has_browser()) {
    return;
  }
  v1::Job& job = add_job(kMarkup, v1::Job::FAILED);
  job.set_kernel(kMarkup);
  job.set_device(kMarkup);
  job.set_error(kMarkup);
  v1::Want& want = *wanted.add_wants();
  want.set_kernel(kMarkup);
  want.set_obstacle(kMarkup);
  status.add_kernel_errors(kMarkup);
  status.add_pinned()->set_job(kMarkup);
  add_record(kMarkup, 4096, 10).set_namespace_(kMarkup);
  for (const char* path : {"/", "/jobs", "/kernels", "/wanted", "/records", "/job?id=%3Cimg",
                           "/stability?kernel=%3Cimg", "/%3Cimg%20src=x%3E"}) {
    CHECK_THAT(check_open(*this, path).main, Contains("&lt;img"));
  }
}

TEST_CASE_METHOD(Pages, "a page stays while the daemon is away and shows the news when it is back") {
  if (!has_browser()) {
    return;
  }
  std::atomic<int> calls{0};
  bool comes_back = false;
  daemon.scripts.get_status = [&] {
    const int call = ++calls;
    if (call > 1 && (!comes_back || call == 2)) {
      throw Error(ErrorCode::Unavailable, "", "the daemon stops");
    }
    v1::GetStatusReply reply;
    reply.set_jobs_running(static_cast<std::uint32_t>(call));
    return reply;
  };
  const Shown away = open("/");
  CHECK_THAT(away.main, Contains("1 job running"));
  CHECK_THAT(away.before, Contains("The daemon does not answer") && !Contains("role=\"status\" hidden"));
  comes_back = true;
  calls = 0;
  const Shown back = open("/");
  CHECK_THAT(back.main, Contains(" jobs running"));
  CHECK_THAT(back.before, Contains("role=\"status\" hidden"));
}

TEST_CASE_METHOD(Pages, "records that cannot be read leave the rest of the pages") {
  if (!has_browser()) {
    return;
  }
  daemon.scripts.list_records = [](const v1::ListRecordsRequest&) -> v1::ListRecordsReply {
    throw Error(ErrorCode::DataLoss, "store", "a row is damaged");
  };
  CHECK_THAT(check_open(*this, "/records").main, Contains("a row is damaged"));
  CHECK_THAT(check_open(*this, "/").main, Contains("No job is queued"));
}

}  // namespace cubind::test
