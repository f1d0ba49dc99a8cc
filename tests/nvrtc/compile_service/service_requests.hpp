// What the tests of the compile service ask it for, and its worker processes.
#pragma once

#include <set>

#include "tests/nvrtc/toolchains/toolchains.hpp"
#include "tuner/agent/compile/compile_service.hpp"

namespace cubind::test {

/// With deadlines that no compile meets on a busy machine, and the priority of the test.
CompileServiceOptions options_for(const Toolchain& toolchain, unsigned slots = 1);
/// Of the newest toolchain.
CompileServiceOptions newest(unsigned slots = 1);

/// Compiles at once; another cubin for each n.
v1::CompileRequest good(int n = 1);
/// NVRTC is busy with it for minutes and needs little memory. Another source for each n.
v1::CompileRequest endless(int n = 1);

/// Wants the input; returns its key, which is the same for the same input.
Digest ask(CompileService& service, const CompileInput& input,
           CompilePriority priority = CompilePriority::Tuning);
/// Waits for what was asked, however long it takes, and gives it up.
v1::CompileReply reply_to(CompileService& service, const Digest& key);
v1::CompileReply compile(CompileService& service, const CompileInput& input);
/// Whether what was asked is still not ready after this time.
bool waits(CompileService& service, const Digest& key,
           std::chrono::milliseconds time = std::chrono::milliseconds(300));

/// The compile workers of this process that live, ready or not.
std::set<pid_t> workers();
/// Waits until there are so many, and a while for others; returns how many there are.
std::size_t workers_of(std::size_t wanted);
/// Waits for a worker that is not this one; it may not be ready yet.
pid_t started_worker(pid_t other_than = 0);
/// Waits until a worker has used up CPU time for its compile.
pid_t busy_worker();

}  // namespace cubind::test
