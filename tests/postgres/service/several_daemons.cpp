#include "tests/postgres/service/several_daemons.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <iostream>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>

#include "base/error.hpp"
#include "tests/service/kill/kill_evidence.hpp"

namespace cubind::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::size_t kDaemons = 3;

std::vector<std::string> acknowledged_by(const TinyDaemon& daemon) {
  const std::string word = " debug: acknowledged ";
  std::vector<std::string> blocks;
  std::istringstream text(read_file(daemon.folder() / "daemon/log"));
  for (std::string line; std::getline(text, line);) {
    if (const auto at = line.find(word); at != std::string::npos) {
      blocks.push_back(line.substr(at + word.size()));
    }
  }
  return blocks;
}

v1::GetVariantRequest waiting_question(const v1::DeviceClass& device, const Problem& problem) {
  v1::GetVariantRequest request;
  request.set_kernel(kTinyKernel);
  *request.mutable_problem() = wire(problem);
  *request.mutable_device()->mutable_facts() = device.facts();
  *request.mutable_device()->mutable_driver() = device.driver();
  request.set_on_miss(v1::WAIT);
  return request;
}

/// Cubins by problem, as callers got them from the problem's own record.
class Answers {
 public:
  void add(const Problem& problem, const v1::GetVariantReply& reply) {
    const std::lock_guard lock(mutex_);
    ++count_;
    if (reply.provenance().evidence() == v1::REPLAYED && reply.provenance().departures().empty()) {
      cubins_[to_string(problem)].insert(reply.artifact().digest());
    }
  }
  void add_failure(const std::string& cause) {
    const std::lock_guard lock(mutex_);
    ++failures_[cause.substr(0, 60)];
  }
  std::map<std::string, std::set<std::string>> cubins() const {
    const std::lock_guard lock(mutex_);
    return cubins_;
  }
  std::size_t count() const {
    const std::lock_guard lock(mutex_);
    return count_;
  }
  void print() const {
    std::cout << count_ << " answers";
    for (const auto& [cause, times] : failures_) {
      std::cout << "; " << times << " x " << cause;
    }
    std::cout << std::endl;
  }

 private:
  mutable std::mutex mutex_;
  std::size_t count_ = 0;
  std::map<std::string, std::set<std::string>> cubins_;
  std::map<std::string, std::size_t> failures_;
};

/// Threads that ask random daemons for random problems until stop().
class Load {
 public:
  Load(const SeveralDaemons& all, const v1::DeviceClass& device, std::uint64_t seed) {
    for (std::size_t i = 0; i < kCallers; ++i) {
      threads_.emplace_back([this, &all, device, seed, i] { ask(all, device, Random(seed + i)); });
    }
  }
  ~Load() { stop(); }
  void stop() {
    stopping_ = true;
    for (std::thread& thread : threads_) {
      if (thread.joinable()) {
        thread.join();
      }
    }
  }
  const Answers& answers() const { return answers_; }

 private:
  static constexpr std::size_t kCallers = 6;

  void ask(const SeveralDaemons& all, const v1::DeviceClass& device, Random random) {
    while (!stopping_) {
      const Problem& problem = all.problems[random.below(all.problems.size())];
      const std::string address = (*all.daemons[random.below(kDaemons)])->address();
      try {
        answers_.add(problem,
                     Connection(address).get_variant(waiting_question(device, problem), milliseconds(4000)));
      } catch (const Error& error) {
        answers_.add_failure(error.cause());
        std::this_thread::sleep_for(milliseconds(20));
      }
    }
  }

  std::atomic<bool> stopping_{false};
  Answers answers_;
  std::vector<std::thread> threads_;
};

void restart(SeveralDaemons& all, TinyDaemon& daemon) {
  daemon->kill();
  daemon->reap();
  // A daemon that begins while the server is down ends: this one comes back with it.
  all.server.wait_until_ready();
  daemon->start();
}

/// A daemon is killed, or the server restarted, every now and then.
void deal(SeveralDaemons& all, const Blows& blows, Random& random) {
  std::size_t kills = 0, restarts = 0;
  bool is_cut_off = blows.cut_off.count() == 0;
  const std::size_t every = std::max<std::size_t>(1, blows.kills / std::max<std::size_t>(1, blows.restarts));
  while (kills < blows.kills) {
    std::this_thread::sleep_for(milliseconds(100 + random.below(500)));
    restart(all, *all.daemons[random.below(kDaemons)]);
    ++kills;
    if (kills % every == 0 && restarts < blows.restarts) {
      restarts++ % 2 == 0 ? all.server.stop() : all.server.kill();
      std::this_thread::sleep_for(milliseconds(random.below(300)));
      all.start_database();
    }
    if (!is_cut_off && kills >= blows.kills / 2) {
      is_cut_off = true;
      all.server.stop();
      std::this_thread::sleep_for(blows.cut_off);
      all.start_database();
    }
  }
}

/// A daemon whose database was away a moment ago connects again by itself.
std::vector<v1::TuneEvent> tuned(TinyDaemon& daemon, const std::vector<Problem>& problems) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (true) {
    try {
      return tune(daemon->connect(), problems);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::Unavailable || std::chrono::steady_clock::now() > until) {
        throw;
      }
      std::this_thread::sleep_for(milliseconds(100));
    }
  }
}

}  // namespace

SeveralDaemons::SeveralDaemons(std::vector<Problem> of, int pace_us) : problems(std::move(of)) {
  for (std::size_t i = 0; i < kDaemons; ++i) {
    TinyDaemonOptions options;
    options.problems = problems;
    options.pace_us = pace_us;
    options.patience = 5 * kPatience;  // its processes share the cores with those that work
    options.arguments = {"--store", url, "--log-level", "debug"};
    daemons.push_back(std::make_unique<TinyDaemon>(std::move(options)));
  }
}

std::string SeveralDaemons::ask(const std::string& sql) { return server.ask(url, sql); }

void SeveralDaemons::note_stale_writes() {
  server.execute(
      url,
      "CREATE TABLE stale (who TEXT, job TEXT); "
      "CREATE FUNCTION judge() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
      "IF NOT EXISTS (SELECT 1 FROM jobs j JOIN daemons d ON d.id = j.owner WHERE j.id = NEW.job AND "
      "d.name = current_setting('application_name')) THEN "
      "INSERT INTO stale VALUES (current_setting('application_name'), NEW.job); END IF; "
      "RETURN NEW; END $$; "
      "CREATE TRIGGER judge BEFORE INSERT ON blocks FOR EACH ROW EXECUTE FUNCTION judge()");
}

std::vector<std::string> SeveralDaemons::acknowledged_blocks() const {
  std::vector<std::string> all;
  for (const auto& daemon : daemons) {
    std::ranges::move(acknowledged_by(*daemon), std::back_inserter(all));
  }
  return all;
}

std::vector<std::string> SeveralDaemons::measured_blocks() const {
  std::vector<std::string> all;
  for (const auto& daemon : daemons) {
    std::ranges::move(daemon->measured_blocks(), std::back_inserter(all));
  }
  return all;
}

std::vector<Problem> cold_problems(std::size_t count) {
  constexpr std::size_t kBuckets = 20;
  std::vector<Problem> problems;
  for (std::size_t i = 0; i < count; ++i) {
    problems.push_back(
        tiny_problem(static_cast<std::int64_t>(2 + i / kBuckets), std::int64_t{8} << (i % kBuckets)));
  }
  return problems;
}

void check_cold_keys(std::size_t problems, std::size_t connections) {
  SeveralDaemons all(cold_problems(problems), 0);
  const v1::DeviceClass device = offered_device((*all.daemons[0])->connect());
  Answers answers;
  std::vector<std::thread> ranks;
  for (std::size_t i = 0; i < connections; ++i) {
    ranks.emplace_back([&, i] {
      const Problem& problem = all.problems[i % problems];
      const std::string address = (*all.daemons[i / problems % kDaemons])->address();
      try {
        answers.add(problem,
                    Connection(address).get_variant(waiting_question(device, problem), 10 * kPatience));
      } catch (const Error& error) {
        answers.add_failure(error.cause());
      }
    });
  }
  for (std::thread& rank : ranks) {
    rank.join();
  }
  answers.print();
  CHECK(answers.count() == connections);
  CHECK(answers.cubins().size() == problems);
  for (const auto& [problem, cubins] : answers.cubins()) {
    INFO(problem);
    CHECK(cubins.size() == 1);
  }
  CHECK(all.ask("SELECT count(*) FROM jobs WHERE kind = 'tune'") == std::to_string(problems));
  CHECK(all.ask("SELECT count(DISTINCT key) FROM jobs WHERE kind = 'tune' AND state = 'done'") ==
        std::to_string(problems));
  CHECK(all.ask("SELECT count(*) FROM records") == std::to_string(problems));
}

void check_blows(std::size_t problems, const Blows& blows, std::uint64_t seed) {
  CAPTURE(seed);
  Random random(seed);
  SeveralDaemons all(cold_problems(problems), 2000);
  all.note_stale_writes();
  const v1::DeviceClass device = offered_device((*all.daemons[0])->connect());
  Load load(all, device, seed);
  deal(all, blows, random);
  load.stop();
  load.answers().print();
  const auto tune_the_rest = [&] {
    for (const auto& daemon : all.daemons) {
      for (const v1::TuneEvent& event : tuned(*daemon, all.problems)) {
        INFO(event.job().error());
        CHECK((event.already_fresh() || event.job().state() == v1::Job::DONE));
      }
    }
  };
  tune_the_rest();
  const std::string count = std::to_string(problems);
  CHECK(all.ask("SELECT count(*) FROM records") == count);
  CHECK(all.ask("SELECT count(*) FROM records WHERE to_generation IS NULL") == count);
  CHECK(all.ask("SELECT count(*) FROM stale") == "0");
  for (const auto& [problem, cubins] : load.answers().cubins()) {
    INFO(problem);
    CHECK(cubins.size() == 1);
  }
  const Table stored = read_table(export_everything((*all.daemons[0])->connect()), "export");
  const auto evidence = gather_evidence(all.measured_blocks(), all.acknowledged_blocks(), stored,
                                        tiny_table(all.problems), blows.kills + 2 * blows.restarts + 1);
  std::size_t repeated = 0, kept = 0;
  for (const auto& [problem, one] : evidence) {
    repeated += one.repeated;
    kept += one.stored;
    for (const std::string& fault : one.faults) {
      FAIL_CHECK(problem << ": " << fault);
    }
  }
  std::cout << kept << " blocks stored, " << repeated << " measured again, by "
            << all.ask("SELECT max(fence) FROM jobs") << " leases of a job at most" << std::endl;
}

}  // namespace cubind::test
