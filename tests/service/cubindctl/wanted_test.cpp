// The want list as a user reads and drains it.
#include <catch2/catch.hpp>

#include "tests/service/cubindctl/live.hpp"

namespace cubind::test {
namespace {

using Catch::Contains;

/// Misses that start no job.
void ask(TinyDaemon& daemon, const Problem& problem, int times = 1) {
  const std::string device = ctl_json(daemon, {"devices"})["devices"][0]["label"];
  for (int i = 0; i < times; ++i) {
    REQUIRE(ctl(daemon,
                {"get", kTinyKernel, "--problem", text_of(problem), "--device", device, "--tune", "never"})
                .exit_code == 0);
  }
}

Json wanted(TinyDaemon& daemon, std::vector<std::string> further = {}) {
  std::vector<std::string> arguments{"wanted"};
  arguments.insert(arguments.end(), further.begin(), further.end());
  return ctl_json(daemon, arguments)["wanted"];
}

bool is_wanted(TinyDaemon& daemon, std::size_t count) {
  return eventually([&] { return wanted(daemon).size() == count; });
}

struct WantedFixture {
  TinyDaemon daemon{{.problems = {tiny_problem(2), tiny_problem(3), tiny_problem(5)}}};
};

}  // namespace

TEST_CASE_METHOD(WantedFixture, "misses are listed most asked first with how often and when") {
  ask(daemon, tiny_problem(2));
  ask(daemon, tiny_problem(3), 3);
  REQUIRE(is_wanted(daemon, 2));
  REQUIRE(eventually([&] { return wanted(daemon)[0]["count"] == 3; }));
  const Json list = wanted(daemon);
  CHECK(list[0]["problem"]["K"] == 3);
  CHECK(list[1]["count"] == 1);
  CHECK(list[0]["policy"] == "cold/3,stream");
  CHECK(list[0]["first_at"] < list[0]["last_at"]);
  CHECK_FALSE(list[0].contains("obstacle"));
  CHECK_THAT(ctl(daemon, {"wanted", "--top", "1"}).out,
             Contains("K=3") && Contains("and 1 more") && !Contains("K=2"));
}

TEST_CASE_METHOD(WantedFixture,
                 "problems of one bucket are one entry with the problem that would be measured") {
  ask(daemon, tiny_problem(2, 3000));
  ask(daemon, tiny_problem(2, 2500));
  REQUIRE(eventually([&] { return wanted(daemon).size() == 1 && wanted(daemon)[0]["count"] == 2; }));
  CHECK(wanted(daemon)[0]["problem"]["N"] == 4096);
}

TEST_CASE_METHOD(WantedFixture, "tune --wanted --top drains the most asked and leaves the others") {
  ask(daemon, tiny_problem(2));
  ask(daemon, tiny_problem(3), 2);
  REQUIRE(is_wanted(daemon, 2));
  REQUIRE(eventually([&] { return wanted(daemon)[0]["count"] == 2; }));
  const Json done = ctl_json(daemon, {"tune", "--wanted", "--top", "1"});
  REQUIRE(done["jobs"].size() == 1);
  CHECK(done["jobs"][0]["problem"]["K"] == 3);
  CHECK(done["jobs"][0]["state"] == "done");
  REQUIRE(wanted(daemon).size() == 1);
  CHECK(wanted(daemon)[0]["problem"]["K"] == 2);
}

TEST_CASE_METHOD(WantedFixture, "tune --wanted drains the whole list and then there is nothing to do") {
  ask(daemon, tiny_problem(2));
  ask(daemon, tiny_problem(3));
  REQUIRE(is_wanted(daemon, 2));
  CHECK(ctl(daemon, {"tune", "--wanted"}).exit_code == 0);
  CHECK(wanted(daemon).empty());
  CHECK_THAT(ctl(daemon, {"wanted"}).out, Contains("Nothing is wanted"));
  const ProgramResult again = ctl(daemon, {"tune", "--wanted"});
  CHECK(again.exit_code == 4);
  CHECK_THAT(again.err, Contains("nothing is wanted"));
}

TEST_CASE_METHOD(WantedFixture, "what cannot be tuned is listed with its reason and passed over") {
  ask(daemon, tiny_problem(2));
  ask(daemon, tiny_problem(3));
  REQUIRE(is_wanted(daemon, 2));
  std::filesystem::remove(daemon.kernels() / "scale.json");
  const Json list = wanted(daemon);
  REQUIRE(list.size() == 2);
  CHECK_THAT(list[0]["obstacle"].get<std::string>(), Contains("is not known"));
  CHECK_THAT(ctl(daemon, {"wanted"}).out, Contains("not now: "));
  const ProgramResult tuned = ctl(daemon, {"tune", "--wanted"});
  CHECK(tuned.exit_code == 4);
  CHECK_THAT(tuned.err, Contains("nothing can be tuned of the wanted problems"));
}

TEST_CASE_METHOD(WantedFixture, "the want list takes no options that its entries have of their own") {
  const ProgramResult result = ctl(daemon, {"tune", "--wanted", "--problem", text_of(tiny_problem(2))});
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.err, Contains("--problem: does not go with --wanted"));
  CHECK(ctl(daemon, {"tune", kTinyKernel, "--problem", text_of(tiny_problem(2)), "--top", "1"}).exit_code ==
        2);
}

TEST_CASE_METHOD(WantedFixture, "a kernel may be named to drain its wants alone") {
  ask(daemon, tiny_problem(2));
  REQUIRE(is_wanted(daemon, 1));
  CHECK(wanted(daemon, {"vector_add"}).empty());
  CHECK(wanted(daemon, {kTinyKernel}).size() == 1);
  CHECK(ctl(daemon, {"tune", "vector_add", "--wanted"}).exit_code == 4);
  CHECK(ctl(daemon, {"tune", kTinyKernel, "--wanted"}).exit_code == 0);
}

TEST_CASE_METHOD(WantedFixture, "an empty want list says how many jobs failed") {
  const auto told = [&] { return ctl(daemon, {"wanted"}).out; };
  CHECK_THAT(told(), Contains("Nothing is wanted") && !Contains("failed"));
  REQUIRE(ctl(daemon, {"tune", kTinyKernel, "--problem", text_of(tiny_problem(7))}).exit_code == 5);
  CHECK_THAT(told(), Contains("1 job failed: `cubindctl jobs --all` says why"));
}

}  // namespace cubind::test
