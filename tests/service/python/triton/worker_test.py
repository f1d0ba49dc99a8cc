"""The compile worker for Triton: what it compiles is what Triton compiles, and what it is sent costs no more
than its limits."""

import concurrent.futures
import errno
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

import triton_found  # noqa: F401  first: it looks for a Python with Triton

# isort: split
import triton
import triton_kernels
import triton_stub as stub
from cubind.triton.worker import framing, sandbox
from triton.backends.compiler import GPUTarget
from triton_running import FOLDER, MAX_FRAME, Worker

HOPPER, BLACKWELL = GPUTarget("cuda", 90, 32), GPUTarget("cuda", 100, 32)
NO_KERNEL = b"module { tt.func public @nothing() { tt.return } }"


def ttir_of(case, target):
    """Stripped of the lines that Triton keeps by default."""
    with unittest.mock.patch.dict(os.environ, TRITON_DISABLE_LINE_INFO="0"):
        return stub.module_of(case, target).str_nodebug().encode()


class Compiles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.worker = cls.enterClassContext(Worker())

    def test_sm_90_gets_the_bytes_that_triton_compiles_without_lines(self):
        for name, case in triton_kernels.CASES.items():
            with self.subTest(name):
                reply, cubin = self.worker.compile(ttir_of(case, HOPPER), options=case.options)
                self.assertEqual(reply["outcome"], "correct", reply["log"])
                compiled = triton.compile(case.source(), target=HOPPER, options=case.options)
                self.assertEqual(cubin, compiled.asm["cubin"])

    def test_sm_100_gets_the_ptx_that_triton_compiles_without_lines(self):
        """Its ptxas is not deterministic with random addresses, as they are here."""
        for name, case in triton_kernels.CASES.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                compiled = triton.compile(case.source(), target=BLACKWELL, options=case.options)
                path = pathlib.Path(folder, "kernel.ttir")
                path.write_bytes(ttir_of(case, BLACKWELL))
                again = triton.compile(str(path), target=BLACKWELL, options=case.options)
                self.assertEqual(again.asm["ptx"], compiled.asm["ptx"])

    def test_sm_100_gets_the_same_bytes_in_every_process(self):
        ttir = ttir_of(triton_kernels.CASES["dot"], BLACKWELL)
        with Worker() as other:
            _, cubin = self.worker.compile(ttir, "sm_100")
            self.assertTrue(cubin)
            self.assertEqual(cubin, self.worker.compile(ttir, "sm_100")[1])
            self.assertEqual(cubin, other.compile(ttir, "sm_100")[1])

    def test_launch_facts_are_those_of_triton_and_ptx(self):
        case = triton_kernels.CASES["masks"]
        reply, _ = self.worker.compile(ttir_of(case, HOPPER), options=case.options)
        launch = reply["launch"]
        self.assertEqual((launch["entry"], launch["threads"], launch["cluster"]), ("masks", 256, [1, 1, 1]))
        scratch = ["u64"] * (1 if triton.__version__.startswith("3.4") else 2)
        self.assertEqual(launch["parameters"], ["u64", "u64", "u32", *scratch])
        if len(scratch) == 2:  # Triton 3.4 does not tell what ptxas says
            self.assertGreater(reply["resources"]["registers"], 0)

    def test_scratch_and_shared_memory_are_told(self):
        reply, _ = self.worker.compile(ttir_of(triton_kernels.CASES["descriptors"], HOPPER))
        self.assertGreater(reply["launch"]["global_scratch_bytes"], 0)
        self.assertGreater(reply["launch"]["shared_bytes"], 0)

    def test_a_cluster_multiplies_the_threads_blocks(self):
        ttir = ttir_of(triton_kernels.CASES["masks"], HOPPER)
        reply, _ = self.worker.compile(ttir, options={"num_ctas": 2})
        self.assertEqual(reply["launch"]["cluster"], [2, 1, 1])

    def test_variables_of_the_environment_change_nothing(self):
        ttir = ttir_of(triton_kernels.CASES["masks"], HOPPER)
        with Worker(environment={"DISABLE_PTXAS_OPT": "1", "TRITON_DISABLE_LINE_INFO": "0"}) as other:
            self.assertEqual(self.worker.compile(ttir)[1], other.compile(ttir)[1])


class Refuses(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.worker = cls.enterClassContext(Worker())

    def refusal(self, ttir=NO_KERNEL, **fields):
        reply, cubin = self.worker.compile(ttir, **fields)
        self.assertEqual((reply["outcome"], cubin), ("compile", b""))
        return reply["log"]

    def test_options_that_reach_files_and_flags_are_refused_by_name(self):
        for name in ("ir_override", "extern_libs", "ptx_options", "instrumentation_mode", "arch"):
            self.assertIn(f"options/{name}: not allowed", self.refusal(options={name: "/etc/passwd"}))
        self.assertIn("options/num_warps: 3 is not a power", self.refusal(options={"num_warps": 3}))
        self.assertIn("options/num_warps: True is no", self.refusal(options={"num_warps": True}))

    def test_attributes_with_the_names_of_options_change_nothing(self):
        ttir = ttir_of(triton_kernels.CASES["masks"], HOPPER)
        named = b'module attributes {ttg.ir_override = "/etc/passwd", "ttg.num-warps" = 32 : i32} {'
        _, plain = self.worker.compile(ttir)
        _, cubin = self.worker.compile(ttir.replace(b"module {", named))
        self.assertTrue(plain)
        self.assertEqual(cubin, plain)

    def test_another_triton_another_field_and_another_architecture_are_named(self):
        self.assertIn("triton: '3.0.0' is asked for", self.refusal(triton="3.0.0"))
        self.assertIn("path: not a field of a request", self.refusal(path="/etc/passwd"))
        self.assertIn("architecture: 'sm_1' is not known", self.refusal(architecture="sm_1"))

    def test_text_that_is_no_ttir_has_the_parsers_words(self):
        for text in (b"", b"\0\xff", b"module {", b"module { tt.func @f() { %0 = tt.no_such : i32 } }"):
            self.assertTrue(self.refusal(text))
        self.assertIn("no_such", self.refusal(b'module { "tt.no_such"() : () -> () }'))

    def test_a_location_would_show_a_line_of_a_hosts_file(self):
        text = b'module { tt.func @f() { %0 = arith.constant 1 : i1 tt.return } loc("/etc/passwd":1:1) }'
        self.assertIn("it has locations", self.refusal(text))
        self.assertIn("it has locations", self.refusal(text.replace(b"loc(", b'loc // "\n (')))

    def test_too_much_ttir_is_refused_before_it_is_parsed(self):
        self.assertIn("at most 4194304 are taken", self.refusal(b" " * ((4 << 20) + 1)))

    def test_a_crash_of_the_compiler_costs_one_compile(self):
        deep = b"module {" * 60000 + b"}" * 60000  # the parser recurses
        self.assertTrue(self.refusal(deep))
        ttir = ttir_of(triton_kernels.CASES["masks"], HOPPER)
        self.assertEqual(self.worker.compile(ttir)[0]["outcome"], "correct")


ATTEMPTS = """
import pathlib, subprocess, sys
sys.path[0] = sys.argv[1]
from worker import sandbox
private = pathlib.Path(sys.argv[2], "private")
private.mkdir()
sandbox.restrict_files(private, pathlib.Path(sys.argv[1]), [pathlib.Path("/usr/bin/env")])
(private / "a").write_text("written")
subprocess.run(["/usr/bin/env"], check=True, stdout=subprocess.DEVNULL)
for attempt in (
    lambda: open("/etc/passwd"),
    lambda: open(private / ".." / "b", "w"),
    lambda: (private / "c").symlink_to("/etc/passwd"),
    lambda: subprocess.run(["/usr/bin/id"]),
):
    try:
        attempt()
    except PermissionError:
        print("denied")
"""


class Files(unittest.TestCase):
    def test_a_compile_reads_what_it_needs_and_writes_to_its_own_folder(self):
        if sandbox.why_files_are_open():
            self.skipTest(sandbox.why_files_are_open())
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-B", "-c", ATTEMPTS, FOLDER.parent, folder]
            found = subprocess.run(command, capture_output=True, text=True, timeout=60)
        self.assertEqual((found.stdout, found.stderr), ("denied\n" * 4, ""))


# As agents give it, but of one call: a sock_filter is a code, two jumps and a value.
SOCKET = {"x86_64": 41, "aarch64": 198}[os.uname().machine]
LOAD_NUMBER, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
REFUSE, ALLOW = 0x0005_0000 | errno.EPERM, 0x7FFF_0000
NO_SOCKETS = b"".join(
    struct.pack("=HBBI", *step)
    for step in (
        (LOAD_NUMBER, 0, 0, 0),
        (JUMP_IF_EQUAL, 0, 1, SOCKET),
        (RETURN, 0, 0, REFUSE),
        (RETURN, 0, 0, ALLOW),
    )
)

SOCKETS = """
import socket, subprocess, sys
sys.path[0] = sys.argv[1]
from worker import sandbox
socket.socket(socket.AF_UNIX).close()
sandbox.restrict_calls(bytes.fromhex(sys.argv[2]))
try:
    socket.socket(socket.AF_UNIX)
except PermissionError:
    print("denied")
attempt = "import socket; socket.socket(socket.AF_UNIX)"
print(b"PermissionError" in subprocess.run([sys.executable, "-c", attempt], capture_output=True).stderr)
"""


class Calls(unittest.TestCase):
    def test_a_compile_and_what_it_starts_make_the_calls_alone_that_the_filter_allows(self):
        if sandbox.why_calls_are_open(NO_SOCKETS):
            self.skipTest(sandbox.why_calls_are_open(NO_SOCKETS))
        command = [sys.executable, "-B", "-c", SOCKETS, FOLDER.parent, NO_SOCKETS.hex()]
        found = subprocess.run(command, capture_output=True, text=True, timeout=60)
        self.assertEqual((found.stdout, found.stderr), ("denied\nTrue\n", ""))

    def test_a_worker_compiles_behind_the_filter_and_says_where_it_has_none(self):
        with Worker("--seccomp", NO_SOCKETS.hex()) as worker:
            self.assertFalse([lack for lack in worker.hello["lacks"] if "calls" in lack])
            ttir = ttir_of(triton_kernels.CASES["masks"], HOPPER)
            self.assertEqual(worker.compile(ttir)[0]["outcome"], "correct")
        with Worker() as worker:
            self.assertTrue([lack for lack in worker.hello["lacks"] if "without --seccomp" in lack])


BOMB = """
import os, signal, sys, time
sys.path[0] = sys.argv[1]
from worker import sandbox
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
if sys.argv[2] == "alone":
    sandbox.leave_network()
sandbox.limit_tasks(20)
started = 0
try:
    while started < 200:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        started += 1
except BlockingIOError:
    print("bounded")
print(started, flush=True)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.killpg(0, signal.SIGTERM)
"""


def user_namespaces():
    """Whether this host gives one to a user other than root."""
    attempt = "import ctypes, os; os.geteuid() or os.setuid(65534); "
    attempt += "raise SystemExit(ctypes.CDLL(None).unshare(0x10000000))"
    return subprocess.run([sys.executable, "-c", attempt], timeout=60).returncode == 0


class Limits(unittest.TestCase):
    def test_a_compile_that_starts_processes_without_end_is_stopped_at_its_limit(self):
        if not user_namespaces():
            self.skipTest("the kernel gives no user namespaces")
        for network in ("alone", "shared"):
            command = [sys.executable, "-B", "-c", BOMB, FOLDER.parent, network]
            found = subprocess.run(
                command, capture_output=True, text=True, timeout=60, start_new_session=True
            )
            self.assertEqual((found.stdout, found.stderr), ("bounded\n19\n", ""), network)

    def wide(self, lines, size=4096):
        """A kernel of many loads and additions."""
        body = "".join(f"%s{i + 1} = arith.addf %s{i}, %s{i} : tensor<{size}xf32>\n" for i in range(lines))
        address = f"tensor<{size}x!tt.ptr<f32>>"
        return (
            "module { tt.func public @wide(%p: !tt.ptr<f32>) {\n"
            f"%r = tt.make_range {{start = 0 : i32, end = {size} : i32}} : tensor<{size}xi32>\n"
            f"%b = tt.splat %p : !tt.ptr<f32> -> {address}\n"
            f"%a = tt.addptr %b, %r : {address}, tensor<{size}xi32>\n"
            f"%s0 = tt.load %a : {address}\n{body}"
            f"tt.store %a, %s{lines} : {address}\ntt.return }} }}"
        ).encode()

    def test_a_compile_that_does_not_end_is_ended_with_its_ptxas(self):
        with Worker("--seconds", "1.5") as worker:
            reply, _ = worker.compile(self.wide(20000))
            self.assertEqual(reply["outcome"], "timeout", reply["log"])
            children = pathlib.Path(f"/proc/{worker.process.pid}/task/{worker.process.pid}/children")
            self.assertEqual(children.read_text() if children.exists() else "", "")
            self.assertEqual(worker.compile(self.wide(1))[0]["outcome"], "correct")

    def test_cpu_time_is_bounded(self):
        with Worker("--cpu-seconds", "1") as worker:
            reply, _ = worker.compile(self.wide(20000))
            self.assertEqual(reply["outcome"], "timeout", reply["log"])
            self.assertIn("SIGXCPU", reply["log"])

    def test_memory_is_bounded(self):
        """LLVM ends by a signal where it gets no memory, Triton by an exception."""
        with Worker("--memory-mib", "260") as worker:
            reply, _ = worker.compile(self.wide(40000, 128))
            self.assertIn(reply["outcome"], ("out_of_memory", "compile"), reply["log"])
            self.assertRegex(reply["log"], "out of memory|cannot allocate memory|ended by SIG.*260 MiB")
            self.assertEqual(worker.compile(self.wide(1, 128))[0]["outcome"], "correct")

    def test_a_compile_that_is_killed_once_is_repeated_and_twice_ran_out_of_memory(self):
        if not pathlib.Path("/proc/self/task", str(os.getpid()), "children").exists():
            self.skipTest("the kernel lists no children")
        with Worker() as worker:
            for kills, outcome in ((1, "correct"), (2, "out_of_memory")):
                with concurrent.futures.ThreadPoolExecutor() as pool:
                    killing = pool.submit(self.kill, worker.process.pid, kills)
                    reply, _ = worker.compile(self.wide(100))
                    self.assertEqual(killing.result(), kills)
                self.assertEqual(reply["outcome"], outcome, reply["log"])

    def kill(self, worker, times):
        """The compiles of a worker, as they come. How many there were."""
        killed = set()
        until = time.monotonic() + 60
        while len(killed) < times and time.monotonic() < until:
            for child in pathlib.Path(f"/proc/{worker}/task/{worker}/children").read_text().split():
                if child not in killed:
                    os.kill(int(child), signal.SIGKILL)
                    killed.add(child)
        return len(killed)

    def test_nothing_is_left_behind(self):
        with tempfile.TemporaryDirectory() as folder:
            with Worker(environment={"TMPDIR": folder}) as worker:
                worker.compile(self.wide(1))
                self.assertEqual(len(os.listdir(folder)), 1)
                self.assertEqual(os.listdir(pathlib.Path(folder, os.listdir(folder)[0])), [])
            self.assertEqual(os.listdir(folder), [])

    def test_a_worker_keeps_to_the_folder_that_it_is_given(self):
        with tempfile.TemporaryDirectory() as parent:
            folder = pathlib.Path(parent, "given")
            folder.mkdir()
            with Worker("--folder", str(folder), environment={"TMPDIR": "/nowhere"}) as worker:
                self.assertEqual(worker.compile(self.wide(1))[0]["outcome"], "correct")
                self.assertEqual(os.listdir(parent), ["given"])
            self.assertEqual(os.listdir(parent), [])

    def test_what_a_killed_worker_left_goes_with_the_next_one_and_what_a_living_one_has_stays(self):
        with tempfile.TemporaryDirectory() as folder:
            workers = [Worker(environment={"TMPDIR": folder}) for _ in range(2)]
            left = os.listdir(folder)
            for name in left:
                os.utime(pathlib.Path(folder, name), (0, 0))
            workers[0].process.kill()
            workers[0].process.wait(60)
            with workers[0], workers[1], Worker(environment={"TMPDIR": folder}):
                self.assertEqual((len(left), len(set(left) & set(os.listdir(folder)))), (2, 1))
                self.assertEqual(workers[1].compile(self.wide(1))[0]["outcome"], "correct")

    def test_there_is_no_network(self):
        with Worker() as worker:
            if any("network" in lack for lack in worker.hello["lacks"]):
                self.skipTest("the kernel gives no namespace")
            own, others = (os.readlink(f"/proc/{pid}/ns/net") for pid in ("self", worker.process.pid))
            self.assertNotEqual(own, others)


class Frames(unittest.TestCase):
    def test_messages_come_back_whole(self):
        a, b = socket.socketpair()
        with b:
            with a:
                framing.send(a, {"x": "ä"}, b"\0\1")
            self.assertEqual(framing.receive(b, MAX_FRAME), ({"x": "ä"}, b"\0\1"))
            self.assertIsNone(framing.receive(b, MAX_FRAME))

    def test_a_peer_that_sends_no_message_is_named(self):
        for sent, words in {
            b"\xff\xff\xff\xff": "at most 100 are taken",
            b"\x08\0\0\0\x01\0": "the stream ends after 2 of 8 bytes",
            b"\x04\0\0\0\xff\0\0\0": "the header's length is 255",
            b"\x06\0\0\0\x02\0\0\0[]": "not a JSON object",
            b"\x05\0\0\0\x01\0\0\0{": "the header is not JSON",
            b"\x01": "the stream ends after 1 of 4 bytes",
        }.items():
            a, b = socket.socketpair()
            with a:
                a.sendall(sent)
            with b, self.assertRaisesRegex(framing.FrameError, words):
                framing.receive(b, 100)
