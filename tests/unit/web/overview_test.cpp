#include <catch2/catch.hpp>

#include "client/web/pages.hpp"

namespace cubind::test {
namespace {

using Catch::Contains;
using web::html_of, web::Snapshot;

Snapshot snapshot_at(const std::string& address) {
  Snapshot snapshot;
  snapshot.address = address;
  snapshot.records.list = std::make_shared<std::vector<v1::ListedRecord>>();
  snapshot.status.add_devices()->set_offered(true);
  return snapshot;
}

void add_want(Snapshot& snapshot, const std::string& obstacle) {
  v1::Want& want = *snapshot.wanted.add_wants();
  want.set_kernel("rmsnorm_forward");
  want.set_count(3);
  want.set_obstacle(obstacle);
}

std::string overview_of(const Snapshot& snapshot) { return html_of(web::overview(snapshot), {"/", {}}); }

v1::Job failed_job(const std::string& kernel) {
  v1::Job job;
  job.set_id("a1");
  job.set_kernel(kernel);
  job.set_state(v1::Job::FAILED);
  job.set_error("the GPU was lost");
  return job;
}

}  // namespace

TEST_CASE("each obstacle of a question has its own remedy") {
  Snapshot snapshot = snapshot_at("unix:///run/cubind.sock");
  SECTION("none") {
    add_want(snapshot, "");
    CHECK_THAT(overview_of(snapshot), Contains("<code>cubindctl tune --wanted</code>"));
  }
  SECTION("another machine reaches no socket of this one") {
    add_want(snapshot, "no agent offers it");
    CHECK_THAT(overview_of(snapshot),
               Contains("<code>cubind --listen HOST:PORT</code>") && Contains("--address tls://HOST:PORT"));
  }
  SECTION("the daemon listens") {
    snapshot.address = "tls://gpu7:7600";
    add_want(snapshot, "no agent offers it");
    CHECK_THAT(overview_of(snapshot), Contains("--address tls://gpu7:7600") && !Contains("--listen"));
  }
  SECTION("what a job cannot mend") {
    add_want(snapshot, "no such kernel is served");
    CHECK_THAT(overview_of(snapshot), Contains("Mend that, then <code>cubindctl tune --wanted</code>"));
  }
}

TEST_CASE("the kernel of a failed verdict is not to be tuned") {
  Snapshot snapshot = snapshot_at("unix:///run/cubind.sock");
  snapshot.jobs = {failed_job("judged_add_a1")};
  const auto pages = [&] {
    return html_of(web::kernels_page(snapshot), {"/kernels", {}}) + overview_of(snapshot) +
           html_of(web::job_page(snapshot, "a1"), {"/job", {}});
  };
  CHECK_THAT(pages(), Contains("judged_add_a1") && !Contains("cubindctl tune judged_add_a1"));
  CHECK_THAT(html_of(web::kernels_page(snapshot), {"/kernels", {}}), !Contains("judged_add_a1"));

  snapshot.jobs = {failed_job("add")};
  CHECK_THAT(pages(), Contains("cubindctl tune add"));
}

}  // namespace cubind::test
