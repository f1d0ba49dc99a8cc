// What the tests of the compile pool ask it for, and its worker processes.
#pragma once

#include "tests/nvrtc/toolchains/toolchains.hpp"
#include "tuner/agent/compile_pool.hpp"

namespace cubind::test {

CompilePoolOptions options_for(const Toolchain& toolchain, unsigned jobs = 1);
/// Of the newest toolchain.
CompilePoolOptions newest(unsigned jobs = 1);

/// Compiles at once; another cubin for each n.
v1::CompileRequest good(int n = 1);
/// NVRTC is busy with it for minutes and needs little memory.
v1::CompileRequest endless();

CompileResult result_of(CompilePool& pool, CompileInput input);

/// Waits until the only worker has used up CPU time for its compile.
int busy_worker(CompilePool& pool);

/// Waits until the pool has so many workers that are ready, and a while for others; returns how many it has.
std::size_t workers_of(const CompilePool& pool, std::size_t wanted);

/// Waits until there is one worker, of whatever pool, and not this one; it may not be ready yet.
pid_t started_worker(pid_t other_than);

}  // namespace cubind::test
