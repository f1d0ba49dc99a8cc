#include "tuner/agent/compile/compile_process.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <utility>

#include "base/error.hpp"
#include "base/framing.hpp"
#include "base/text.hpp"

namespace cubind {
namespace {

constexpr int kWorkerFd = 3;
constexpr std::size_t kMaxReplyFrame = std::size_t{512} << 20;
constexpr std::size_t kKeptStderr = 4096;

// In the idle class a compile gets what the machine's other processes leave it, on a busy one a twentieth of
// a core. Its processor time is limited as that of any other.
constexpr int kBackgroundPatience = 20;

// The interval at which the parent looks at a running compile: often enough that a withdrawn job frees its
// core at once, seldom enough to cost nothing.
constexpr std::chrono::milliseconds kLook{20};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
#else
constexpr bool kSanitized = false;
#endif

// The resident set; 0 where the process is gone.
std::uint64_t resident_bytes(pid_t pid) {
  std::ifstream statm("/proc/" + std::to_string(pid) + "/statm");
  std::uint64_t total = 0;
  std::uint64_t resident = 0;
  statm >> total >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

std::string mebibytes(std::uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

std::string seconds(std::chrono::milliseconds duration) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g s", std::chrono::duration<double>(duration).count());
  return text;
}

}  // namespace

Subprocess CompileProcess::start(bool in_background, const UniqueFd& socket) {
  CompilerProgram::Command command = options_.program->command(kWorkerFd, options_.deadline);
  if (!command.folder_prefix.empty()) {
    folder_.emplace(command.folder_prefix);
    command.arguments.insert(command.arguments.end(), {"--folder", folder_->path().string()});
  }
  SubprocessOptions child;
  child.program = std::move(command.program);
  child.arguments = std::move(command.arguments);
  child.fds = {{.fd = socket.get(), .number = kWorkerFd}};
  child.stderr_to = ChildStream::Pipe;
  // Sanitizers reserve more address space than there is memory.
  if (!kSanitized && !command.limits_its_memory && options_.address_space_bytes != 0) {
    child.limit_address_space_bytes = options_.address_space_bytes;
  }
  child.nice = options_.nice;
  child.idle_class = in_background;
  child.working_folder = "/";
  return Subprocess::spawn(child);
}

CompileProcess::CompileProcess(const CompileWorkerOptions& options, bool in_background,
                               const std::function<bool()>& is_withdrawn)
    : options_(options),
      deadline_(options.deadline * (in_background ? kBackgroundPatience : 1)),
      start_deadline_(options.start_deadline * (in_background ? kBackgroundPatience : 1)),
      child_([&] {
        auto [mine, theirs] = make_socket_pair();
        socket_ = std::move(mine);
        return start(in_background, theirs);
      }()) {
  const int flags = fcntl(child_.stderr_pipe().get(), F_GETFL);
  fcntl(child_.stderr_pipe().get(), F_SETFL, flags | O_NONBLOCK);
  bool is_its_word = false;
  const std::string cause = await_hello(is_withdrawn, is_its_word);
  if (!cause.empty()) {
    child_.kill_group();
    const ExitStatus status = child_.wait();
    read_stderr();
    throw Error(ErrorCode::Unavailable, "compile worker",
                cause + (is_its_word ? "" : " (" + status.describe() + ")") + last_words());
  }
}

// Empty, or the reason why there is no toolchain, by the worker's word or by how it ended.
std::string CompileProcess::await_hello(const std::function<bool()>& is_withdrawn, bool& is_its_word) {
  const auto deadline = std::chrono::steady_clock::now() + start_deadline_;
  try {
    while (!wait_readable(socket_.get(), std::min(std::chrono::steady_clock::now() + kLook, deadline))) {
      read_stderr();  // a full pipe would keep it from its hello
      if (is_withdrawn()) {
        return "not wanted any more";
      }
      if (std::chrono::steady_clock::now() >= deadline) {
        return "no hello within " + seconds(start_deadline_);
      }
    }
    const std::optional<std::string> frame = read_frame_until(socket_.get(), kMaxReplyFrame, deadline);
    if (!frame) {
      return "it ended before its hello";
    }
    const v1::CompileWorkerHello hello = options_.program->hello(*frame);
    toolchain_ = hello.toolchain();
    is_its_word = true;
    return hello.error();
  } catch (const Error& error) {
    return error.what();
  }
}

bool CompileProcess::is_usable() const {
  // The worker sends nothing between two requests: readable means the end of the stream.
  return !wait_readable(socket_.get(), std::chrono::steady_clock::now());
}

CompileProcess::Compilation CompileProcess::compile(const CompileInput& input,
                                                    const std::function<bool()>& is_withdrawn) {
  ++compiles_;
  Compilation answer;
  const auto deadline = std::chrono::steady_clock::now() + deadline_;
  const auto computed_before = cpu_time();
  try {
    write_frame_until(socket_.get(), frame_of(input), deadline);
    const std::optional<std::string> frame = await_reply(deadline, is_withdrawn, answer);
    if (answer.ended) {
      return answer;
    }
    if (!frame) {
      return lost();
    }
    answer.reply = options_.program->reply(*frame, input);
    answer.ended = answer.reply.worker_ends();
    return answer;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::DeadlineExceeded) {
      const bool stood_still = cpu_time() - computed_before < options_.deadline * 4 / 5;
      answer = failed("killed: the compile took longer than " + seconds(deadline_));
      answer.stood_still = stood_still;
      return answer;
    }
    const bool broken = error.code() == ErrorCode::Unavailable || error.code() == ErrorCode::DataLoss;
    return broken ? lost() : failed(error.what());
  }
}

std::string CompileProcess::frame_of(const CompileInput& input) {
  const std::optional<Digest> headers = input.headers ? std::optional(input.headers->digest) : std::nullopt;
  const bool has_them = headers == kept_headers_;
  if (headers) {
    kept_headers_ = headers;
  }
  return options_.program->request(input, has_them);
}

std::optional<std::string> CompileProcess::await_reply(std::chrono::steady_clock::time_point deadline,
                                                       const std::function<bool()>& is_withdrawn,
                                                       Compilation& answer) {
  while (true) {
    const auto now = std::chrono::steady_clock::now();
    if (wait_readable(socket_.get(), std::min(now + kLook, deadline))) {
      return read_frame_until(socket_.get(), kMaxReplyFrame, deadline);
    }
    read_stderr();
    if (is_withdrawn()) {
      answer = failed("withdrawn");
      answer.withdrawn = true;
      return std::nullopt;
    }
    if (options_.memory_bytes != 0 && resident_bytes(child_.pid()) > options_.memory_bytes) {
      answer =
          failed("killed: the compile took more than " + mebibytes(options_.memory_bytes) + " of memory");
      return std::nullopt;
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      throw Error(ErrorCode::DeadlineExceeded, "compile worker", "no reply");
    }
  }
}

std::chrono::nanoseconds CompileProcess::cpu_time() const {
  clockid_t clock{};
  timespec used{};
  if (::clock_getcpuclockid(child_.pid(), &clock) != 0 || ::clock_gettime(clock, &used) != 0) {
    return {};
  }
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

CompileProcess::Compilation CompileProcess::failed(std::string cause) {
  child_.kill_group();
  child_.wait();
  Compilation answer;
  answer.reply.set_outcome(v1::COMPILE);
  answer.reply.set_log(std::move(cause));
  answer.ended = true;
  return answer;
}

// The worker ended in the middle of a compile.
CompileProcess::Compilation CompileProcess::lost() {
  // Its end of the socket closes before it is gone, but not long before.
  std::optional<ExitStatus> gone =
      child_.wait_until(std::chrono::steady_clock::now() + std::chrono::seconds(5));
  read_stderr();
  Compilation answer = failed("");
  const ExitStatus status = gone ? *gone : child_.wait();
  std::string cause = "the compiler crashed: " + status.describe();
  if (status.signal == SIGKILL || status.signal == SIGTERM || status.signal == SIGINT) {
    answer.worker_lost = true;
    cause = "the compile worker was killed from outside: " + status.describe();
  } else if (status.signal == SIGXCPU) {
    cause = "killed: the compile took more CPU time than its deadline of " + seconds(options_.deadline);
  }
  // Compilers of LLVM's family abort when memory runs out, and the cap is the likeliest reason here.
  if (stderr_.find("bad_alloc") != std::string::npos || stderr_.find("out of memory") != std::string::npos) {
    cause += "; its memory is capped at " + mebibytes(options_.address_space_bytes);
  }
  answer.reply.set_log(cause + last_words());
  return answer;
}

void CompileProcess::read_stderr() {
  char buffer[4096];
  while (true) {
    const ssize_t count = read(child_.stderr_pipe().get(), buffer, sizeof(buffer));
    if (count <= 0) {
      break;
    }
    stderr_.append(buffer, static_cast<std::size_t>(count));
    if (stderr_.size() > kKeptStderr) {
      stderr_.erase(0, stderr_.size() - kKeptStderr);
    }
  }
}

std::string CompileProcess::last_words() const { return stderr_.empty() ? "" : "\n" + valid_utf8(stderr_); }

}  // namespace cubind
