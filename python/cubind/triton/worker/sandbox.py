"""What a compile may do: no network, few files, bounded memory and time.

Triton's IR is a client's data. It reaches LLVM and ptxas, whose faults must cost one compile and nothing
else. What the kernel of this host refuses is said by the functions here, and by the worker's hello.
"""

from __future__ import annotations

import ctypes
import errno
import os
import pathlib
import resource
import struct
import sys
import sysconfig

_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_ADDR_NO_RANDOMIZE = 0x0040000
_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 22, 36, 38
_SECCOMP_MODE_FILTER = 2
_FILTER_STEP_BYTES = 8  # a sock_filter
_SIGKILL = 9

# Numbers of system calls, the same on every architecture of Linux.
_LANDLOCK_CREATE_RULESET, _LANDLOCK_ADD_RULE, _LANDLOCK_RESTRICT_SELF = 444, 445, 446
_LANDLOCK_RULE_PATH_BENEATH = 1
_LANDLOCK_VERSION = 1  # of landlock_create_ruleset: asks which version there is
_ACCESS_EXECUTE, _ACCESS_WRITE_FILE, _ACCESS_READ_FILE, _ACCESS_READ_DIR = 1, 2, 4, 8
_ACCESS_OF_VERSION_2 = (1 << 14) - 1
_ACCESS_REFER = 1 << 13  # moving a file to another folder, as Triton does; version 1 always denies it
_ACCESS_TRUNCATE = 1 << 14  # from version 3 on
_ACCESS_TCP = 0b11  # bind and connect, from version 4 on
_ACCESS_IOCTL_DEV = 1 << 15  # from version 5 on
_SCOPED = 0b11  # abstract Unix sockets, and signals to other processes; from version 6 on
_READ = _ACCESS_READ_FILE | _ACCESS_READ_DIR
_REMOVE_MAKE = 0b1_0000 | 0b10_0000 | 0b1000_0000 | 0b1_0000_0000  # files and folders, no links or devices

_libc = ctypes.CDLL(None, use_errno=True)


class SandboxError(Exception):
    """The kernel refused what it has to give."""


def _checked(result: int, what: str) -> int:
    if result < 0:
        raise SandboxError(f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


def leave_network() -> str:
    """Enter a network of no interfaces. Call it while the process has one thread. "" or why it failed."""
    if _libc.unshare(_CLONE_NEWNET) == 0 or _libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) == 0:
        return ""
    return f"the host's network is reachable: unshare: {os.strerror(ctypes.get_errno())}"


def adopt_orphans() -> None:
    """Become the parent of what a killed child leaves behind, so that it can be ended too."""
    _checked(_libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl")


def end_with_parent() -> None:
    """Have this process killed when its parent ends."""
    _checked(_libc.prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0), "prctl")


def fix_addresses() -> str:
    """Have programs that this process starts use the same addresses each time: the bytes that ptxas gives
    for sm_100 depend on them. "" or why it failed."""
    current = _libc.personality(ctypes.c_ulong(0xFFFFFFFF))
    if current >= 0 and _libc.personality(ctypes.c_ulong(current | _ADDR_NO_RANDOMIZE)) >= 0:
        return ""
    return f"addresses stay random: personality: {os.strerror(ctypes.get_errno())}"


def limit(memory_bytes: int, cpu_seconds: int, file_bytes: int) -> None:
    """Bound this process, and each that it starts. Above the CPU time SIGXCPU comes, a second later
    SIGKILL."""
    for which, value, grace in (
        (resource.RLIMIT_AS, memory_bytes, 0),
        (resource.RLIMIT_CPU, cpu_seconds, 1),
        (resource.RLIMIT_FSIZE, file_bytes, 0),
        (resource.RLIMIT_CORE, 0, 0),
    ):
        most = resource.getrlimit(which)[1]
        hard = value + grace if most == resource.RLIM_INFINITY else min(value + grace, most)
        resource.setrlimit(which, (min(value, hard), hard))


def limit_tasks(most: int) -> None:
    """Bound how many threads and processes this process and those that it starts have together. Call it while
    the process has one thread. The kernel counts a user's other tasks too, except in a user namespace of its
    own: nothing happens where it gives none, and for root, whom it does not limit."""
    if os.geteuid() == 0:
        return
    if _has_own_users() or _libc.unshare(_CLONE_NEWUSER) == 0:
        resource.setrlimit(resource.RLIMIT_NPROC, (most, most))


def _has_own_users() -> bool:
    """After leave_network() no user of the host has a number here."""
    return not pathlib.Path("/proc/self/uid_map").read_text().strip()


# ---- System calls ----


def why_calls_are_open(program: bytes) -> str:
    """Where restrict_calls() cannot restrict; else ""."""
    if not program:
        return "system calls are not filtered: the worker was started without --seccomp"
    # Without a filter the kernel looks for one at address 0, if it knows filters at all.
    if _libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, None) != 0 and ctypes.get_errno() == errno.EFAULT:
        return ""
    return f"system calls are not filtered: seccomp: {os.strerror(ctypes.get_errno())}"


def restrict_calls(program: bytes) -> None:
    """From here on: only the system calls that the program allows, an array of sock_filter. Nothing happens
    where why_calls_are_open() has a reason."""
    if why_calls_are_open(program):
        return
    steps = ctypes.create_string_buffer(program, len(program))
    filters = struct.pack("@HP", len(program) // _FILTER_STEP_BYTES, ctypes.addressof(steps))
    _checked(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")
    _checked(_libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, filters), "prctl(PR_SET_SECCOMP)")


# ---- Files ----


def _landlock_version() -> int:
    """0 where the kernel has none that serves."""
    version = _libc.syscall(_LANDLOCK_CREATE_RULESET, None, 0, _LANDLOCK_VERSION)
    return version if version >= 2 else 0


def why_files_are_open() -> str:
    """Where restrict_files() cannot restrict; else ""."""
    if _landlock_version():
        return ""
    return "the host's files are readable: the kernel has no Landlock, or that of Linux before 5.19"


def restrict_files(private: pathlib.Path, triton: pathlib.Path, programs: list[pathlib.Path]) -> None:
    """From here on: read Python, Triton and the system's libraries; write below `private` alone; start
    `programs` alone. Nothing happens where why_files_are_open() has a reason."""
    version = _landlock_version()
    if not version:
        return
    handled = _ACCESS_OF_VERSION_2
    handled |= (_ACCESS_TRUNCATE if version >= 3 else 0) | (_ACCESS_IOCTL_DEV if version >= 5 else 0)
    fields = [handled] + [_ACCESS_TCP] * (version >= 4) + [_SCOPED] * (version >= 6)
    attributes = struct.pack(f"={len(fields)}Q", *fields)
    ruleset = _checked(
        _libc.syscall(_LANDLOCK_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0),
        "landlock_create_ruleset",
    )
    writable = _READ | _ACCESS_WRITE_FILE | _REMOVE_MAKE | _ACCESS_REFER | (handled & _ACCESS_TRUNCATE)
    rules: list[tuple[str | pathlib.Path, int]] = [(path, _READ) for path in _readable(triton)]
    rules += [(private, writable), ("/dev/null", _ACCESS_READ_FILE | _ACCESS_WRITE_FILE)]
    rules += [(program, _ACCESS_READ_FILE | _ACCESS_EXECUTE) for program in [*programs, *_loaders()]]
    for allowed, access in rules:
        _allow(ruleset, allowed, access)
    _checked(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")
    _checked(_libc.syscall(_LANDLOCK_RESTRICT_SELF, ruleset, 0), "landlock_restrict_self")
    os.close(ruleset)


def _allow(ruleset: int, path: str | pathlib.Path, access: int) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return  # what does not exist needs no rule
        raise
    rule = struct.pack("=Qi", access if os.path.isdir(path) else access & ~_ACCESS_READ_DIR, opened)
    try:
        _checked(
            _libc.syscall(_LANDLOCK_ADD_RULE, ruleset, _LANDLOCK_RULE_PATH_BENEATH, rule, 0),
            f"landlock_add_rule of {path}",
        )
    finally:
        os.close(opened)


def _readable(triton: pathlib.Path) -> list[str]:
    """Python's own modules, Triton, and what programs are linked with. Not every folder of sys.path: a
    project's own files are none of a compile's business."""
    python = [sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")]
    libraries = ["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache"]
    return [str(triton), os.path.dirname(os.path.realpath(os.__file__)), *python, *libraries]


def _loaders() -> list[str]:
    """What the kernel runs to start a linked program."""
    machine = os.uname().machine
    names = {"x86_64": "ld-linux-x86-64.so.2", "aarch64": "ld-linux-aarch64.so.1"}
    if machine not in names or sys.platform != "linux":
        raise SandboxError(f"programs of {sys.platform} on {machine} are not known")
    return [f"/lib64/{names[machine]}", f"/lib/{names[machine]}"]
