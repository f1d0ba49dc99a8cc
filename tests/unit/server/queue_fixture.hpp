// The parts of the job queue without the scheduler, which calls them.
#pragma once

#include "tests/unit/server/scheduler_fixture.hpp"

namespace cubind::test {

struct QueueFixture {
  TempDir folder;
  ManualClock clock;
  std::unique_ptr<Store> store = Store::open({.path = folder.path() / "store.db"});
  Index index;
  VectorAddLibrary kernels{clock};
  const JobContext context{*store, index, kernels, clock};
  AgentRoster agents{clock};
  OpenJobs jobs{clock};
  Leases leases{clock, context.options.lease};
  JobOwners owners{*store, kernels, leases};
  LeaseOrder order{jobs, leases, owners, index, kernels, clock};
  LentGpus lent{agents.joined()};
  Failures failures{kernels, agents.joined(), clock, context.options.failure_pause};
  Placement placement{agents.joined(), leases, failures, lent, context.options.compile_leases};
  JobQueue queue{context, jobs, leases, owners, order, failures};
  PeerChanges peers{context, agents, jobs, owners, queue};
  Submissions submissions{context, agents, jobs, owners, queue, peers};
  Dispatcher dispatcher{context, agents, jobs, leases, owners, order, placement, queue};
  RecordingLink link;

  TuneOrder order_of(std::int64_t n) {
    TuneOrder asked;
    asked.question = question_of(n);
    asked.question.interface = kernels.find("vector_add")->interface;
    asked.device = h200_class();
    return asked;
  }
  OpenJob& submit(std::int64_t n = 4096) { return *jobs.find(submissions.tune(order_of(n), false)); }
  /// A job that an agent holds.
  OpenJob& leased(std::int64_t n = 4096) {
    OpenJob& job = submit(n);
    if (agents.joined().empty()) {
      agents.join(agent_with(), link);
    }
    dispatcher.dispatch();
    return job.lease ? job : throw std::logic_error("no lease");
  }
  JobRow stored(const std::string& id) {
    JobRow row;
    store->read([&](StoreReader& reader) { row = reader.job(id).value(); });
    return row;
  }
};

}  // namespace cubind::test
