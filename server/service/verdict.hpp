// What is said of a judged source, as docs/judge.md has it.
#pragma once

#include <string>
#include <vector>

#include "base/json.hpp"
#include "server/jobs/job_event.hpp"
#include "server/lookup/lookup.hpp"
#include "server/store/store_reader.hpp"

namespace cubind {

/// A problem of a task: its job, which has ended, and what it has stored.
struct JudgedProblem {
  Question question;
  Configuration baseline;         // without kBaselineTunable
  bool is_deterministic = false;  // as the source claims to be
  JobEvent ended;
};

struct JudgedFiles {
  std::string task;                                  // the kernel's name
  bool is_callers = false;                           // the task came with the question
  std::vector<SourceFile> task_files, source_files;  // the task's spec is one of its files
};

/// The verdict, with "outcome" and "problems". Throws FailedPrecondition if a problem has no verdict because
/// its reference or its baseline failed, and Cancelled if its job was cancelled.
OrderedJson verdict_of(StoreReader& store, const JudgedFiles& files,
                       const std::vector<JudgedProblem>& problems);

}  // namespace cubind
