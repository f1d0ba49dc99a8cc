// The page for Prometheus.
#include <catch2/catch.hpp>

#include <future>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "base/error.hpp"
#include "server/daemon.hpp"
#include "tests/service/server/daemon_fixture.hpp"
#include "tests/support/http_reply.hpp"
#include "tests/support/paths.hpp"

namespace cubind::test {
namespace {

using Catch::Matchers::Contains;

std::string http_get(int port, const std::string& path) {
  const std::string reply = http_reply(port, path);
  REQUIRE_THAT(reply, Catch::Matchers::StartsWith("HTTP/1.1 200"));
  return reply.substr(reply.find("\r\n\r\n") + 4);
}

struct Page {
  std::map<std::string, std::string> types, help;       // by family
  std::map<std::string, double> samples;                // by name with labels, as on the page
  std::map<std::string, std::set<std::string>> labels;  // by family; without a histogram's own
};

/// Every line must be one of Prometheus's text format.
Page parsed(const std::string& text) {
  static const std::regex kComment("# (HELP|TYPE) ([a-z_]+) (.+)");
  static const std::regex kSample(
      R"re(([a-z_]+)(\{([a-z_]+="[^"\\]*",?)+\})? ([-+0-9.e]+|[+-]Inf|[Nn]a[Nn]))re");
  static const std::regex kLabel(R"re(([a-z_]+)=")re");
  Page page;
  std::string family;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    std::smatch found;
    if (std::regex_match(line, found, kComment)) {
      family = found[2];
      (found[1] == "HELP" ? page.help : page.types)[family] = found[3];
      continue;
    }
    REQUIRE(std::regex_match(line, found, kSample));
    REQUIRE(found[1].str().starts_with(family));
    const std::string labels = found[2];
    REQUIRE(page.samples.emplace(found[1].str() + labels, std::stod(found[4])).second);
    for (std::sregex_iterator label(labels.begin(), labels.end(), kLabel), end; label != end; ++label) {
      if ((*label)[1] != "le") {
        page.labels[family].insert((*label)[1]);
      }
    }
  }
  return page;
}

struct MeteredDaemon : DaemonFixture {
  MeteredDaemon() {
    config().metrics = "127.0.0.1:0";
    restart();
  }
  Page page() { return parsed(http_get(metrics_port(), "/metrics")); }
};

TEST_CASE("answers are counted by departure and evidence and timed by how they were found") {
  MeteredDaemon daemon;
  AutoAgent agent(daemon.address(), hello_with(h200_facts()));
  daemon.tune(tune_vector_add({4096}));
  for (int i = 0; i < 3; ++i) {
    REQUIRE(daemon.get(vector_add(4096)).status.ok());
  }
  v1::GetVariantRequest unknown = vector_add(4096);
  unknown.set_kernel("no_such_kernel");
  CHECK_FALSE(daemon.get(unknown).status.ok());
  Page page = daemon.page();
  CHECK(page.samples[R"(cubind_answers_total{match="exact",evidence="measured"})"] == 3);
  CHECK(page.samples[R"(cubind_answer_seconds_count{path="looked_up"})"] == 1);
  CHECK(page.samples[R"(cubind_answer_seconds_count{path="repeated"})"] == 2);
  CHECK(page.samples[R"(cubind_answer_seconds_bucket{path="repeated",le="+Inf"})"] == 2);
  CHECK(page.samples[R"(cubind_answer_failures_total{code="not_found"})"] == 1);
  CHECK(page.samples[R"(cubind_lookups_total{result="hit"})"] == 3);
}

TEST_CASE("jobs and agents are counted by state and outcome") {
  MeteredDaemon daemon;
  AutoAgent agent(daemon.address(), hello_with(h200_facts()));
  daemon.tune(tune_vector_add({4096}));
  Page page = daemon.page();
  CHECK(page.samples[R"(cubind_job_outcomes_total{outcome="done"})"] == 1);
  CHECK(page.samples[R"(cubind_jobs{state="queued"})"] == 0);
  CHECK(page.samples[R"(cubind_gpus{device_class="nvidia-h200",state="idle"})"] == 1);
  CHECK(page.samples["cubind_agents"] == 1);
  CHECK(page.samples["cubind_records"] == 1);
  CHECK(page.samples[R"(cubind_store_bytes{part="file"})"] > 0);
}

TEST_CASE("a winner that a retune replaces by another configuration is counted") {
  MeteredDaemon daemon;
  FakeAgent agent(daemon.address(), hello_with(h200_facts()));
  const auto tune_to = [&](std::size_t winner) {
    v1::TuneRequest request = tune_vector_add({4096});
    request.set_retune(true);
    auto events = std::async(std::launch::async, [&] { return daemon.tune(request); });
    const v1::LeaseGrant lease = agent.wait_for_lease();
    const auto trials = fake_trials(lease, 3);
    REQUIRE(agent.send_batch(lease, batch_of(trials)));
    REQUIRE(agent.send_result(lease, result_of(lease, trials.at(winner))));
    events.get();
  };
  tune_to(0);
  tune_to(0);
  CHECK(daemon.page().samples["cubind_winner_changes_total"] == 0);
  tune_to(1);
  CHECK(daemon.page().samples["cubind_winner_changes_total"] == 1);
}

TEST_CASE("the daemon's page lists every metric with its type and labels and what it says") {
  MeteredDaemon daemon;
  AutoAgent agent(daemon.address(), hello_with(h200_facts()));
  daemon.tune(tune_vector_add({4096}));
  daemon.get(vector_add(4096));
  daemon.get(vector_add(-1));
  const Page page = daemon.page();
  const std::string docs = read_file(source_dir() / "docs" / "daemon.md");
  std::size_t families = 0;
  for (const auto& [family, type] : page.types) {
    INFO(family);
    if (family.starts_with("exposer_")) {  // the library's own
      continue;
    }
    ++families;
    CHECK(family.ends_with("_total") == (type == "counter"));
    const std::size_t row = docs.find("\n| `" + family + "` | " + type + " | ");
    REQUIRE(row != std::string::npos);
    const std::string text = docs.substr(row + 1, docs.find('\n', row + 1) - row - 1);
    CHECK_THAT(text, Contains(page.help.at(family)));
    for (const std::string& label :
         page.labels.contains(family) ? page.labels.at(family) : std::set<std::string>()) {
      CHECK_THAT(text, Contains("`" + label + "`"));
    }
  }
  std::size_t rows = 0;
  for (std::size_t at = docs.find("\n| `cubind_"); at != std::string::npos;
       at = docs.find("\n| `cubind_", at + 1)) {
    ++rows;
  }
  CHECK(rows == families);
}

TEST_CASE("a port that is taken ends the start with the option and the address") {
  MeteredDaemon daemon;
  Config second = daemon.config();
  second.database = daemon.folder() / "other.db";
  second.socket = daemon.folder() / "other";
  second.metrics = "127.0.0.1:" + std::to_string(daemon.metrics_port());
  CHECK_THROWS_WITH(Daemon(second).start(), Contains("--metrics " + second.metrics));
}

}  // namespace
}  // namespace cubind::test
