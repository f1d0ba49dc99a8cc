#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/file.hpp"
#include "base/subprocess.hpp"
#include "base/unique_fd.hpp"
#include "tuner/agent/compile/compiler_program.hpp"

namespace cubind {

/// What a compile worker runs with. It is started by exec with an empty environment, niced, in a process
/// group of its own.
struct CompileWorkerOptions {
  std::shared_ptr<const CompilerProgram> program;
  // By the wall clock; in the background twenty times as long.
  std::chrono::milliseconds deadline{30'000};        // of one compile
  std::chrono::milliseconds start_deadline{60'000};  // from exec to the worker's hello, cold disk included
  // Caps of one worker. Above the first (RLIMIT_AS) the compiler gets no more memory and says so or crashes;
  // the second is its resident set, which the parent watches, and is what the machine feels. 0: none.
  std::uint64_t address_space_bytes = std::uint64_t{4} << 30;
  std::uint64_t memory_bytes = std::uint64_t{3} << 30;
  int nice = 10;
};

/// The parent's end of one process of a CompilerProgram. Used by the thread that made it, which must live
/// as long (Subprocess says why). The destructor kills the process group.
class CompileProcess {
 public:
  /// Starts the worker and waits for its hello, or until `is_withdrawn`. Throws Error(Unavailable) with the
  /// worker's output if there is no hello.
  CompileProcess(const CompileWorkerOptions& options, bool in_background,
                 const std::function<bool()>& is_withdrawn);

  struct Compilation {
    v1::CompileReply reply;
    bool worker_lost = false;  // killed from outside
    bool stood_still = false;  // killed at the deadline, when it had hardly computed
    bool withdrawn = false;    // `is_withdrawn` became true
    bool ended = false;        // the process is gone or must not be used again
  };
  /// Sends a request and waits for its reply, for the deadline, for the resident set to pass its cap, or for
  /// `is_withdrawn`, which is asked every few milliseconds. Never throws for a fault of the worker.
  Compilation compile(const CompileInput& input, const std::function<bool()>& is_withdrawn);

  /// False if the worker ended while it had nothing to do.
  bool is_usable() const;

  const v1::Toolchain& toolchain() const noexcept { return toolchain_; }
  unsigned compiles() const noexcept { return compiles_; }

 private:
  Subprocess start(bool in_background, const UniqueFd& socket);
  std::string await_hello(const std::function<bool()>& is_withdrawn, bool& is_its_word);
  /// What the worker has computed so far; zero where the system does not tell.
  std::chrono::nanoseconds cpu_time() const;
  /// With the shared headers, unless the worker has them from the request before.
  std::string frame_of(const CompileInput& input);
  Compilation failed(std::string cause);
  Compilation lost();
  std::optional<std::string> await_reply(std::chrono::steady_clock::time_point deadline,
                                         const std::function<bool()>& is_withdrawn, Compilation& answer);
  void read_stderr();
  std::string last_words() const;

  const CompileWorkerOptions& options_;
  const std::chrono::milliseconds deadline_, start_deadline_;
  UniqueFd socket_;
  std::optional<TempDir> folder_;  // before the child, which has ended when it goes
  Subprocess child_;
  v1::Toolchain toolchain_;
  std::optional<Digest> kept_headers_;  // by the worker
  std::string stderr_;                  // its last part
  unsigned compiles_ = 0;
};

}  // namespace cubind
