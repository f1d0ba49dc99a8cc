#include "tuner/worker/compile_sandbox.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "base/error.hpp"
#include "base/unique_fd.hpp"
#include "tuner/sandbox/landlock.hpp"
#include "tuner/sandbox/syscall_filter.hpp"

namespace cubind::worker {
namespace {

// A precompiled header, the same open for reading, a temporary file, and one to spare.
constexpr rlim_t kMemoryFiles = 4;
constexpr rlim_t kMemoryFileBytes = rlim_t{576} << 20;

// `later`: the limit up to which it may be raised afterwards.
void set_limit(int resource, rlim_t value, rlim_t later, const char* name) {
  rlimit limit{};
  getrlimit(static_cast<__rlimit_resource_t>(resource), &limit);
  limit = {.rlim_cur = value, .rlim_max = std::max(value, std::min(later, limit.rlim_max))};
  if (setrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0) {
    throw system_error("compile worker", name, errno);
  }
}

template <typename Step>
void note_refusal(std::vector<std::string>& lacks, const Step& step) {
  try {
    step();
  } catch (const Error& error) {
    lacks.emplace_back(error.what());
  }
}

}  // namespace

std::vector<std::string> close_all_doors(int fd) {
  std::vector<std::string> lacks;
  note_refusal(lacks, [] { deny_all_files(); });  // while there is a free descriptor for its rules
  if (chdir("/") != 0) {
    throw system_error("compile worker", "chdir /", errno);
  }
  // A hole below the limit would be a free descriptor.
  int filler = open("/dev/null", O_RDWR | O_CLOEXEC);
  while (filler >= 0 && filler < fd) {
    filler = open("/dev/null", O_RDWR | O_CLOEXEC);
  }
  close_range(static_cast<unsigned>(fd) + 1, ~0U, 0);
  set_limit(RLIMIT_CORE, 0, 0, "RLIMIT_CORE");
  set_limit(RLIMIT_FSIZE, 0, kMemoryFileBytes, "RLIMIT_FSIZE");
  // poll() refuses more descriptors than this limit, so it cannot be 0.
  const rlim_t descriptors = static_cast<rlim_t>(fd) + 1;
  set_limit(RLIMIT_NOFILE, descriptors, descriptors + kMemoryFiles, "RLIMIT_NOFILE");
  if (const UniqueFd opened(open("/", O_RDONLY | O_CLOEXEC)); opened) {
    throw Error(ErrorCode::Internal, "compile worker", "files can still be opened");
  }
  note_refusal(lacks, [&] { allow_computing_alone(fd); });
  return lacks;
}

bool allow_memory_files(int fd) {
  const rlim_t descriptors = static_cast<rlim_t>(fd) + 1 + kMemoryFiles;
  const rlimit files{.rlim_cur = descriptors, .rlim_max = descriptors};
  const rlimit bytes{.rlim_cur = kMemoryFileBytes, .rlim_max = kMemoryFileBytes};
  ::signal(SIGXFSZ, SIG_IGN);  // a write beyond the limit fails
  return setrlimit(RLIMIT_FSIZE, &bytes) == 0 && setrlimit(RLIMIT_NOFILE, &files) == 0;
}

void allow_cpu_seconds(std::uint64_t seconds) {
  rusage usage{};
  rlimit limit{};
  if (seconds == 0 || getrusage(RUSAGE_SELF, &usage) != 0 || getrlimit(RLIMIT_CPU, &limit) != 0) {
    return;
  }
  const auto used = static_cast<std::uint64_t>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec);
  limit.rlim_cur = std::min<rlim_t>(used + seconds + 1, limit.rlim_max);
  setrlimit(RLIMIT_CPU, &limit);
}

}  // namespace cubind::worker
