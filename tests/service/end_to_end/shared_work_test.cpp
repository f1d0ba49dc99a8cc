// Kernels of different names that share source, problem and configurations: what is measured for one is known
// for the other, and nothing that fails for one changes what the other has.
#include <catch2/catch.hpp>

#include <set>
#include <sstream>

#include "plan/wire.hpp"
#include "tests/support/facts.hpp"
#include "tests/support/tiny_daemon.hpp"

namespace cubind::test {
namespace {

constexpr char kOther[] = "scale_again";

/// The tiny kernel, and the same under another name, changed by `edit`. The table has the same trials for
/// both, each changed by `edit_trial`.
struct TwoNames {
  explicit TwoNames(const std::function<void(OrderedJson&)>& edit,
                    const std::function<void(TableTrial&)>& edit_trial = {})
      : daemon({.problems = {problem}, .edit_table = [&](Table& table) { add_other(table, edit_trial); }},
               false) {
    OrderedJson spec = OrderedJson::parse(read_file(daemon.kernels() / "scale.json"));
    spec["name"] = kOther;
    edit(spec);
    write_file_atomic(daemon.kernels() / "other.json", spec.dump());
    daemon->start();
  }

  static void add_other(Table& table, const std::function<void(TableTrial&)>& edit) {
    for (TableTrial trial : std::vector<TableTrial>(table.trials)) {
      trial.context.kernel = kOther;
      table.trials.push_back(std::move(trial));
    }
    if (edit) {
      std::ranges::for_each(table.trials, edit);
    }
  }

  v1::TuneEvent tune(const std::string& kernel, const std::string& name_space = "", bool retune = false) {
    v1::TuneRequest request = tune_request({problem});
    request.set_kernel(kernel);
    request.set_namespace_(name_space);
    request.set_retune(retune);
    v1::TuneEvent last;
    daemon->connect().tune(
        request, [&](const v1::TuneEvent& event) { last = event; }, {}, std::nullopt);
    INFO(last.job().error());
    return last;
  }

  /// How the kernel's trials ended, and how often each has been sampled, as `export --all-trials` has them.
  std::vector<TableTrial> trials(const std::string& kernel) {
    std::vector<TableTrial> found;
    for (TableTrial& trial : read_table(export_everything(daemon->connect()), "export").trials) {
      if (trial.context.kernel == kernel) {
        found.push_back(std::move(trial));
      }
    }
    return found;
  }

  const Problem problem = tiny_problem(2);
  TinyDaemon daemon;
};

bool is_done(const v1::TuneEvent& event) { return event.job().state() == v1::Job::DONE; }

void fail_the_other(TableTrial& trial) {
  if (trial.context.kernel == kOther) {
    trial.outcome = Outcome::WrongResult;
    for (VerificationResult& one : trial.verifications) {
      one.set_outcome(v1::WRONG_RESULT);
    }
  }
}

TEST_CASE("what was measured for one name is neither measured nor compiled again for another one") {
  TwoNames f([](OrderedJson&) {});
  const bool is_reversed = GENERATE(false, true);
  const std::string first = is_reversed ? kOther : kTinyKernel, second = is_reversed ? kTinyKernel : kOther;
  const v1::TuneEvent one = f.tune(first);
  REQUIRE(is_done(one));
  const std::size_t measured = f.daemon.measured_blocks().size();
  const v1::TuneEvent other = f.tune(second);
  REQUIRE(is_done(other));
  CHECK(other.winner().SerializeAsString() == one.winner().SerializeAsString());
  CHECK(other.job().nvrtc_calls() == 0);
  CHECK(f.daemon.measured_blocks().size() == measured);
  CHECK(f.trials(second).size() == kTinyConfigurations);
  CHECK(f.trials(first).size() == kTinyConfigurations);
}

TEST_CASE("a kernel with one configuration more or fewer measures that one and the finalists alone") {
  const bool has_more = GENERATE(true, false);
  TwoNames f([](OrderedJson& spec) { spec["tunables"]["VECTOR"] = {1, 2}; });
  const std::string first = has_more ? kOther : kTinyKernel, second = has_more ? kTinyKernel : kOther;
  REQUIRE(is_done(f.tune(first)));
  const std::size_t measured = f.daemon.measured_blocks().size();
  REQUIRE(is_done(f.tune(second)));
  const auto blocks = f.daemon.measured_blocks();
  std::set<std::string> screened;
  for (std::size_t i = measured; i < blocks.size(); ++i) {
    std::istringstream line(blocks[i]);
    std::string trial, stage;
    if (line >> trial >> stage; stage == "SCREEN") {
      screened.insert(trial);
    }
  }
  CHECK(screened.size() == (has_more ? 4 : 0));
}

TEST_CASE("failures of one name by another tolerance or reference stay its own, in either order") {
  const bool is_tolerance = GENERATE(true, false), fails_first = GENERATE(true, false);
  TwoNames f(
      [&](OrderedJson& spec) {
        if (is_tolerance) {
          spec["tolerance"]["f32"]["rtol"] = 0;
        } else {
          spec["default"] = {{{"THREADS", 64}, {"VECTOR", 1}}};
        }
      },
      fail_the_other);
  const auto fails = [&] { CHECK(f.tune(kOther).job().state() == v1::Job::FAILED); };
  if (fails_first) {
    fails();
  }
  REQUIRE(is_done(f.tune(kTinyKernel)));
  if (!fails_first) {
    fails();
  }
  for (const TableTrial& trial : f.trials(kTinyKernel)) {
    CHECK((trial.outcome == Outcome::Correct || trial.outcome == Outcome::Unverified));
  }
  CHECK(is_done(f.tune(kTinyKernel, "elsewhere")));
  CHECK(is_done(f.tune(kTinyKernel, "", true)));
  fails();
}

TEST_CASE("a trial that was wrong after its timing for one name wins for none, and no report is refused") {
  const Configuration wrong = fastest_tiny_configuration(tiny_problem(2));
  TwoNames f([](OrderedJson&) {},
             [&](TableTrial& trial) {
               if (trial.context.configuration == wrong) {
                 const VerificationResult before = test::comparison_of(trial.context.problem);
                 VerificationResult after = before;
                 after.set_after_timing(true);
                 after.set_outcome(v1::WRONG_RESULT);
                 trial.verifications = {before, after};
               }
             });
  for (const char* kernel : {kTinyKernel, kOther}) {
    const v1::TuneEvent ended = f.tune(kernel);
    REQUIRE(is_done(ended));
    CHECK(to_string(configuration_from_wire(ended.winner(), "winner")) != to_string(wrong));
  }
  CHECK(f.daemon->log().find("is refused") == std::string::npos);
}

}  // namespace
}  // namespace cubind::test
