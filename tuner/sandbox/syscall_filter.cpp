#include "tuner/sandbox/syscall_filter.hpp"

#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>

#include "base/error.hpp"
#include "base/unique_fd.hpp"

namespace cubind {
namespace {

using Context = std::unique_ptr<void, decltype(&seccomp_release)>;

void check(int result, const std::string& call) {
  if (result < 0) {
    throw system_error("seccomp", call, -result);
  }
}

// A call by another architecture's numbers ends its thread: libseccomp's default.
Context filter_with_default(std::uint32_t action) {
  Context context(seccomp_init(action), &seccomp_release);
  if (!context) {
    throw Error(ErrorCode::Unavailable, "seccomp", "seccomp_init failed");
  }
  return context;
}

// Each name is resolved when the program runs: an architecture lacks some, an older libseccomp the newest.
template <typename... Conditions>
void add(const Context& context, std::uint32_t action, const char* name, Conditions... conditions) {
  const int number = seccomp_syscall_resolve_name(name);
  if (number == __NR_SCMP_ERROR || number < 0) {
    return;
  }
  check(seccomp_rule_add(context.get(), action, number, sizeof...(conditions), conditions...), name);
}

template <std::size_t N>
void add_all(const Context& context, std::uint32_t action, const std::array<const char*, N>& names) {
  for (const char* name : names) {
    add(context, action, name);
  }
}

// ---- a process that only computes ----

constexpr auto kComputing = std::to_array<const char*>({
    "read",
    "readv",
    "write",
    "writev",
    "close",
    "lseek",
    "poll",
    "ppoll",
    "mmap",
    "munmap",
    "mremap",
    "mprotect",
    "madvise",
    "brk",
    "futex",
    "membarrier",
    "clock_gettime",
    "clock_getres",
    "clock_nanosleep",
    "nanosleep",
    "gettimeofday",
    "time",
    "times",
    "getrusage",
    "getpid",
    "gettid",
    "getppid",
    "getuid",
    "geteuid",
    "getgid",
    "getegid",
    "sched_yield",
    "sched_getaffinity",
    "sysinfo",
    "uname",
    "getcwd",
    "getrandom",
    "rt_sigaction",
    "rt_sigprocmask",
    "rt_sigreturn",
    "sigaltstack",
    "restart_syscall",
    "set_robust_list",
    "rseq",
    "exit",
    "exit_group",
    // files in memory, which the limits of descriptors and of file sizes bound
    "memfd_create",
    "dup",
});

// They fail as where the limit of descriptors alone holds, so that compilers say the same on every host.
constexpr auto kOpening = std::to_array<const char*>({"open", "openat", "openat2", "creat"});
constexpr auto kLooking = std::to_array<const char*>({
    "stat",
    "lstat",
    "newfstatat",
    "statx",
    "access",
    "faccessat",
    "faccessat2",
    "readlink",
    "readlinkat",
    "statfs",
    "getxattr",
    "lgetxattr",
    "listxattr",
    "llistxattr",
});

// A thread shares its memory; anything else that clone() makes is a process or has namespaces of its own.
constexpr std::uint64_t kNamespaces =
    CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
constexpr std::uint64_t kThread = CLONE_VM | CLONE_THREAD;

// ---- a compiler with files and programs ----

constexpr auto kDenied = std::to_array<const char*>({
    // network
    "socket",
    "socketpair",
    "connect",
    "bind",
    "listen",
    "accept",
    "accept4",
    "socketcall",
    // other processes
    "kill",
    "tkill",
    "rt_sigqueueinfo",
    "rt_tgsigqueueinfo",
    "pidfd_send_signal",
    "pidfd_open",
    "pidfd_getfd",
    "ptrace",
    "process_vm_readv",
    "process_vm_writev",
    "process_madvise",
    "process_mrelease",
    "kcmp",
    "migrate_pages",
    "move_pages",
    "setpriority",
    "ioprio_set",
    "sched_setscheduler",
    "sched_setparam",
    "sched_setattr",
    "sched_setaffinity",
    // namespaces, mounts, users
    "unshare",
    "setns",
    "mount",
    "umount2",
    "pivot_root",
    "chroot",
    "open_tree",
    "move_mount",
    "fsopen",
    "fsconfig",
    "fsmount",
    "fspick",
    "mount_setattr",
    "setuid",
    "setgid",
    "setreuid",
    "setregid",
    "setresuid",
    "setresgid",
    "setgroups",
    "setfsuid",
    "setfsgid",
    "capset",
    // what Landlock does not see of files
    "truncate",
    "chmod",
    "fchmod",
    "fchmodat",
    "fchmodat2",
    "chown",
    "lchown",
    "fchown",
    "fchownat",
    "setxattr",
    "lsetxattr",
    "fsetxattr",
    "removexattr",
    "lremovexattr",
    "fremovexattr",
    "utime",
    "utimes",
    "futimesat",
    "utimensat",
    "open_by_handle_at",
    "name_to_handle_at",
    "fanotify_init",
    "inotify_init",
    "inotify_init1",
    // what outlives a process, or is memory that no limit counts
    "shmget",
    "shmat",
    "semget",
    "msgget",
    "mq_open",
    "memfd_create",
    "memfd_secret",
    "add_key",
    "request_key",
    "keyctl",
    // gates into the kernel
    "io_uring_setup",
    "io_uring_enter",
    "io_uring_register",
    "io_setup",
    "bpf",
    "perf_event_open",
    "userfaultfd",
    "init_module",
    "finit_module",
    "delete_module",
    "kexec_load",
    "kexec_file_load",
    "iopl",
    "ioperm",
    "modify_ldt",
    "quotactl",
    "quotactl_fd",
    "acct",
    "swapon",
    "swapoff",
    "reboot",
    "sethostname",
    "setdomainname",
    "settimeofday",
    "clock_settime",
    "clock_adjtime",
    "adjtimex",
    "syslog",
    "vhangup",
    "nfsservctl",
    "lookup_dcookie",
    "uselib",
    "personality",
});

// Of a call's argument. The library's macros are C, which clang does not take for C++.
scmp_arg_cmp is(unsigned argument, scmp_datum_t value) { return {argument, SCMP_CMP_EQ, value, 0}; }
scmp_arg_cmp is_not(unsigned argument, scmp_datum_t value) { return {argument, SCMP_CMP_NE, value, 0}; }
scmp_arg_cmp has_bits(unsigned argument, scmp_datum_t mask, scmp_datum_t bits) {
  return {argument, SCMP_CMP_MASKED_EQ, mask, bits};
}

}  // namespace

void allow_computing_alone(int fd) {
  const Context context = filter_with_default(SCMP_ACT_ERRNO(ENOSYS));
  const auto socket = static_cast<scmp_datum_t>(fd);
  const auto self = static_cast<scmp_datum_t>(::getpid());
  check(seccomp_attr_set(context.get(), SCMP_FLTATR_CTL_TSYNC, 1), "TSYNC");
  add_all(context, SCMP_ACT_ALLOW, kComputing);
  add_all(context, SCMP_ACT_ERRNO(EMFILE), kOpening);
  add_all(context, SCMP_ACT_ERRNO(ENOENT), kLooking);
  add(context, SCMP_ACT_ALLOW, "sendto", is(0, socket), is(4, 0));
  add(context, SCMP_ACT_ALLOW, "recvfrom", is(0, socket));
  add(context, SCMP_ACT_ALLOW, "fcntl", is(1, F_GETFL));
  add(context, SCMP_ACT_ALLOW, "prlimit64", is(0, 0));
  add(context, SCMP_ACT_ALLOW, "tgkill", is(0, self));
  add(context, SCMP_ACT_ALLOW, "clone", has_bits(0, kNamespaces | kThread, kThread));
  check(seccomp_load(context.get()), "seccomp_load");
}

std::string compiler_filter(bool may_signal) {
  const Context context = filter_with_default(SCMP_ACT_ALLOW);
  add_all(context, SCMP_ACT_ERRNO(EPERM), kDenied);
  if (!may_signal) {
    add(context, SCMP_ACT_ERRNO(EPERM), "tgkill");
  }
  add(context, SCMP_ACT_ERRNO(EPERM), "prlimit64", is_not(0, 0));
  for (const std::uint64_t one : {CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER,
                                  CLONE_NEWPID, CLONE_NEWNET}) {
    add(context, SCMP_ACT_ERRNO(EPERM), "clone", has_bits(0, one, one));
  }
  // Its flags lie in memory, where no filter sees them; the C library falls back to clone().
  add(context, SCMP_ACT_ERRNO(ENOSYS), "clone3");
  const UniqueFd file(::memfd_create("compiler_filter", MFD_CLOEXEC));
  if (!file) {
    throw system_error("seccomp", "memfd_create", errno);
  }
  check(seccomp_export_bpf(context.get(), file.get()), "seccomp_export_bpf");
  std::string program(static_cast<std::size_t>(::lseek(file.get(), 0, SEEK_END)), '\0');
  if (::pread(file.get(), program.data(), program.size(), 0) != static_cast<ssize_t>(program.size())) {
    throw system_error("seccomp", "read", errno);
  }
  return program;
}

}  // namespace cubind
