#include "client/cubindctl/report/report_page.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "tests/fakes/browser.hpp"
#include "tests/support/reported.hpp"

namespace cubind::test {
namespace {

using Catch::Contains;
using ctl::OutputJson;
using ctl::report_page;

constexpr std::size_t kMostPageBytes = 2'000'000;
const std::string kMarkup = "<img src=\"http://127.0.0.1:9/x\" onerror=\"throw 1\">";

std::size_t lines_of(const std::string& main, const std::string& mark) {
  const std::size_t begin = main.find("class=\"" + mark + "\"");
  return count(main.substr(begin, main.find("</g>", begin) - begin), "<path");
}

// Every question, no error, and no figure that is none.
Shown check_shown(const OutputJson& data) {
  Shown shown = show(report_page(data));
  CHECK(shown.console == std::vector<std::string>{});
  for (const char* question : {"Was it worth it?", "Where did the time go?", "Which tunable matters?",
                               "What is the limit?", "What failed, and why?", "What is covered"}) {
    CHECK_THAT(shown.main, Contains(question));
  }
  CHECK_THAT(shown.main,
             !Contains("NaN") && !Contains("undefined") && !Contains("Infinity") && !Contains("`"));
  return shown;
}

// The page after the script, which its policy would refuse: this page has none.
Shown show_after(const OutputJson& data, const std::string& script) {
  std::string page = report_page(data);
  const std::size_t meta = page.find("<meta http-equiv");
  page.erase(meta, page.find('>', meta) + 1 - meta);
  return show(replaced(page, "</body>", "<script>" + script + "</script></body>"));
}

v1::Job job(v1::Job::State state) {
  v1::Job job;
  job.set_id("1234");
  job.set_kernel(kTinyKernel);
  job.set_state(state);
  job.set_elapsed_ms(2000);
  v1::StageTime& stage = *job.add_stages();
  stage.set_stage("compiling");
  stage.set_ms(1500);
  return job;
}

}  // namespace

TEST_CASE("a browser tells what a page loads and what its script throws") {
  if (!has_browser()) {
    return;
  }
  const std::string page = report_page(ctl::report_data({}));
  CHECK(show(page).console.empty());
  const std::string image = replaced(page, "<main", "<img src=\"http://127.0.0.1:9/x.png\"><main");
  CHECK_THAT(show(image).console.at(0), Contains("Content Security Policy"));
  CHECK_THAT(show(replaced(page, "\"records\":[]", "\"records\":null")).console.at(0), Contains("TypeError"));
}

TEST_CASE_METHOD(Reported, "an empty store is a page that says what is missing") {
  if (!has_browser()) {
    return;
  }
  input.table = {};
  const Shown shown = check_shown(data());
  CHECK(count(shown.main, "class=\"absent\"") >= 5);
  CHECK_THAT(shown.main, Contains("No record is stored") && !Contains("<table"));
}

TEST_CASE_METHOD(Reported, "one trial is a page of its own") {
  if (!has_browser()) {
    return;
  }
  input.table.trials = {trial(256, 4)};
  const Shown shown = check_shown(data());
  CHECK_THAT(shown.main, Contains("No tunable was timed with two values"));
  CHECK_THAT(shown.main, Contains("The winner beats the default for 1 of 1 record"));
}

TEST_CASE_METHOD(Reported, "six hundred trials are below two megabytes") {
  if (!has_browser()) {
    return;
  }
  OutputJson many = data();
  OutputJson& best = many["tunings"][0]["best"];
  for (std::int64_t i = 0; best.size() < 600; ++i) {
    best.push_back(best.back());
    best.back()["configuration"]["THREADS"] = i;
    best.back()["time_us"] = 1000 + i;
    best.back()["judged_against_us"] = 900 - i;
    best.back()["is_winner"] = best.back()["is_default"] = false;
  }
  CHECK(report_page(many).size() < kMostPageBytes);
  const Shown shown = check_shown(many);
  CHECK_THAT(shown.main, Contains("25 of 601 rows") && Contains("class=\"curve\"") && Contains(" µs</text>"));
  CHECK(lines_of(shown.main, "fast") == 30);
  CHECK(lines_of(shown.main, "slow") == 570);
}

TEST_CASE_METHOD(Reported, "failed jobs and trials are shown with their messages") {
  if (!has_browser()) {
    return;
  }
  input.jobs = {job(v1::Job::FAILED), job(v1::Job::DONE)};
  input.jobs[0].set_error("no reference");
  const Shown shown = check_shown(data());
  CHECK_THAT(shown.main, Contains("1 job failed.") && Contains("no reference"));
  CHECK_THAT(shown.main, Contains("1 failed (1 by runtime)") && Contains("illegal address"));
  CHECK_THAT(shown.main, Contains("75 % of it went to compiling"));
  CHECK_THAT(shown.main, Contains("The winner is THREADS=256, VECTOR=4") && Contains("the fastest of "));
}

TEST_CASE_METHOD(Reported, "a failed job's error and command are read without scrolling on a phone") {
  if (!has_browser()) {
    return;
  }
  input.jobs = {job(v1::Job::FAILED)};
  input.jobs[0].set_error("no reference: " + std::string(300, 'x'));
  const Shown shown = show_after(data(), R"(
    document.body.style.width = '390px';
    const box = document.querySelector('#failed .scroll');
    document.querySelector('main').append(`${box.scrollWidth - box.clientWidth} px hidden`);
  )");
  CHECK_THAT(shown.main, Contains("<code>cubindctl tune scale") && Contains(">0 px hidden"));
}

TEST_CASE_METHOD(Reported, "the winner and the chosen rows are shown though others come before them") {
  if (!has_browser()) {
    return;
  }
  OutputJson many = data();
  for (OutputJson& failed = many["tunings"][0]["failed"]; failed.size() < 60;) {
    failed.push_back(failed[0]);
  }
  const Shown shown = show_after(many, R"(
    const boxes = () => [...document.querySelectorAll('#failed input[type=checkbox]')];
    const first = boxes()[0].closest('tr').textContent;
    boxes()[20].click();
    document.querySelectorAll('#failed th button')[2].click();
    document.querySelectorAll('#failed th button')[2].click();
    document.querySelector('main').append(`first: ${first}; chosen: ${boxes().filter((box) => box.checked).length}`);
  )");
  CHECK(shown.console == std::vector<std::string>{});
  CHECK_THAT(shown.main, Contains("first: correctwinner") && Contains("chosen: 1"));
}

TEST_CASE_METHOD(Reported, "ten thousand records are one curve and a table that shows the first") {
  if (!has_browser()) {
    return;
  }
  OutputJson many = data();
  for (int i = 1; i < 10'000; ++i) {
    many["records"].push_back(many["records"][0]);
    many["records"].back()["gain_over_default"] = 1 + i * 1e-4;
  }
  const Shown shown = check_shown(many);
  CHECK_THAT(shown.main, Contains("25 of 10,000 rows") && Contains("of 10,000 records"));
  CHECK(count(shown.main, "<circle") > 10'000);
}

TEST_CASE_METHOD(Reported, "gains over the library have a curve of their own and losses are counted") {
  if (!has_browser()) {
    return;
  }
  CHECK_THAT(check_shown(data()).main, Contains("No client has compared a record with a library"));
  OutputJson compared = data();
  const auto record = [&](double gain, double low, double high) {
    OutputJson one = compared["records"][0];
    one["over_library"] = {
        {{"library", "torch 0"}, {"gain", 9.0}, {"gain_low", 8.0}, {"gain_high", 10.0}},
        {{"library", "torch 2.13.0"}, {"gain", gain}, {"gain_low", low}, {"gain_high", high}}};
    return one;
  };
  compared["records"] = {record(1.5, 1.4, 1.6), record(1.0, 0.99, 1.01), record(0.8, 0.75, 0.85),
                         data()["records"][0]};
  const Shown shown = check_shown(compared);
  CHECK_THAT(shown.main, Contains("The winner beats the default for 4 of 4 records"));
  CHECK_THAT(shown.main,
             Contains("The winner beats the library for 1 of 3 records and loses for 1; 1 ties (grey)"));
  CHECK_THAT(shown.main, Contains("The median gain is 1.00×, the largest 1.50×"));
  CHECK_THAT(shown.main, Contains("Left out: 1 record without that comparison"));
  CHECK_THAT(shown.main, Contains("0.800 times as fast as torch 2.13.0 (0.750 to 0.850)"));
}

TEST_CASE_METHOD(Reported, "configurations of several problems are compared by the best of each") {
  if (!has_browser()) {
    return;
  }
  OutputJson compared = data();
  REQUIRE(compared["tunings"].size() == 2);
  const Shown shown = check_shown(compared);
  CHECK_THAT(shown.main,
             Contains("Which configurations are good everywhere?") && Contains(" its best, THREADS="));
  const std::size_t begin = shown.main.find("class=\"cells\"");
  const std::size_t cells = count(shown.main.substr(begin, shown.main.find("</g>", begin) - begin), "<rect");
  CHECK(cells > 2);
  CHECK(cells % 2 == 0);
  compared["tunings"].erase(1);
  CHECK_THAT(check_shown(compared).main, !Contains("good everywhere"));
}

TEST_CASE_METHOD(Reported, "names with markup are text") {
  if (!has_browser()) {
    return;
  }
  input.jobs = {job(v1::Job::FAILED)};
  std::string text = data().dump();
  const std::string name = OutputJson(kMarkup).dump();
  for (const char* own : {"scale", "THREADS", "N", "illegal address"}) {
    text = replaced(text, "\"" + std::string(own) + "\"", name);
  }
  text = replaced(text, OutputJson(input.table.devices[0].label).dump(), name);
  const Shown shown = check_shown(OutputJson::parse(text));
  CHECK_THAT(shown.main, !Contains("<img") && Contains("&lt;img"));
}

TEST_CASE_METHOD(Reported, "the limit is a roofline where work and clocks are known and else a sentence") {
  if (!has_browser()) {
    return;
  }
  OutputJson known = data();
  CHECK_THAT(check_shown(known).main, Contains("share of the roofline is unknown"));
  for (OutputJson& tuning : known["tunings"]) {
    tuning["work"] = {{"bytes", 1e6}, {"flops", 1e6}};
    tuning["peak"] = {{"bytes_per_second", 1e12}, {"flops_per_second", 1e14}};
    for (OutputJson& one : tuning["best"]) {
      one["flops_per_second"] = 1e12 / one["time_us"].get<double>();
      one["roofline_share"] = 1 / one["time_us"].get<double>();
    }
  }
  CHECK_THAT(check_shown(known).main, Contains("class=\"roof\"") && Contains("peak of 1000 GB/s"));
  known["tunings"][0]["work"].erase("flops");
  CHECK_THAT(check_shown(known).main, Contains("share of the limit") && !Contains("class=\"roof\""));
}

TEST_CASE_METHOD(Reported, "two rows are compared side by side and a failed one has its command") {
  if (!has_browser()) {
    return;
  }
  const Shown shown = show_after(data(), R"(
    for (const i of [0, 2]) document.querySelectorAll('#failed input[type=checkbox]')[i].click();
  )");
  CHECK(shown.console == std::vector<std::string>{});
  CHECK_THAT(shown.main, Contains("The two side by side") && Contains("class=\"differs\""));
  CHECK_THAT(shown.main, Contains("<code>cubindctl forget scale --problem N=4096,K=2,T=f32"));
}

TEST_CASE_METHOD(Reported, "rows are filtered by words and sorted by a column") {
  if (!has_browser()) {
    return;
  }
  const Shown shown = show_after(data(), R"(
    const filter = document.querySelector('#failed input[type=search]');
    filter.value = 'runtime';
    filter.dispatchEvent(new Event('input'));
    document.querySelector('#covered th button').click();
  )");
  CHECK(shown.console == std::vector<std::string>{});
  CHECK_THAT(shown.main, Contains("1 row<") && Contains("aria-sort=\"ascending\""));
}

TEST_CASE("a verdict is a page with its outcome, its rounds and what was judged") {
  if (!has_browser()) {
    return;
  }
  const auto trial = [](double us) {
    OutputJson json = {{"outcome", "correct"}, {"blocks", OutputJson::array()}};
    json["verifications"] = {
        {{"after_timing", true}, {"outcome", "correct"}, {"worst_excess", 0.25}, {"launches", 128}}};
    for (int round = 0; round < 30; ++round) {
      json["blocks"].push_back({{"stage", "final"}, {"index", round}, {"samples_us", {us, us + 1}}});
    }
    return json;
  };
  const OutputJson files = {{{"path", kMarkup}, {"sha256", std::string(64, 'a')}}};
  const OutputJson problem = {
      {"dims", {{"N", 4096}}}, {"types", {{"T", "f32"}}}, {"flags", OutputJson::object()}};
  OutputJson verdict = {{"outcome", "suspect"}, {"device", "nvidia-h200"}, {"policy", "cold/3,stream"}};
  verdict["judged_at"] = "2026-11-29T19:00:00.000Z";
  verdict["task"] = {{"name", "scale"}, {"from", "caller"}, {"files", files}};
  verdict["source"] = files;
  verdict["problems"] = {{{"problem", problem},
                          {"outcome", "suspect"},
                          {"detail", "never reads b"},
                          {"note", "58 % of dx would pass as 0"},
                          {"gain", 2.0},
                          {"gain_low", 1.9},
                          {"gain_high", 2.1},
                          {"source", trial(10)},
                          {"baseline", trial(20)}},
                         {{"problem", problem}, {"outcome", "refused"}, {"detail", "no launch"}}};
  const Shown shown = show(ctl::verdict_page(verdict));
  CHECK(shown.console == std::vector<std::string>{});
  CHECK_THAT(shown.main, Contains("scale: suspect") && Contains("2.00× (1.90× to 2.10×)") &&
                             Contains("never reads b") && Contains("58 % of dx") &&
                             Contains("128 launches") && Contains("&lt;img") && !Contains("undefined"));
  CHECK(count(shown.main, "<circle") >= 60);
}

}  // namespace cubind::test
