"""What cubind chooses when it tunes the same problems again and again, and nothing is remembered but compiled
code."""

import json
import pathlib
import statistics
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
from daemon import Daemon

NEAR = 1.05  # the oracle measures whatever is within 5 % of a tuning's best, and two ticks


class Repetitions(Daemon):
    """Each repetition has a daemon with an empty store. One agent serves them all, which keeps what it
    compiled."""

    def __init__(self, bin_dir, agent_options=()):
        super().__init__(bin_dir, ["--no-local-agent"])
        self.agent_options, self.agent, self.stores = agent_options, None, 0

    def start(self):
        super().start()
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if self.agent is None or self.agent.poll() is not None:
                command = [self.bin / "cubind-agent", "--address", self.address, *self.agent_options]
                self.agent = subprocess.Popen(command, stdout=self.log, stderr=subprocess.STDOUT)
            if self.offers_gpu():
                return
            time.sleep(0.1)
        raise RuntimeError(f"no agent offers a GPU: {self.log_tail()}")

    def __exit__(self, *_):
        if self.agent is not None:
            self.agent.terminate()
            self.agent.wait(20)
            self.agent = None
        super().__exit__()

    def begin_anew(self):
        self.end()
        self.stores += 1
        self.store = self.store.with_name(f"store{self.stores}.db")
        self.start()


def tune_once(daemon, pairs, limit):
    """(seconds, the table with all trials, what failed)."""
    shapes = pathlib.Path(daemon.folder.name) / "shapes.json"
    shapes.write_text(json.dumps({"problems": [{"kernel": kernel, **problem} for kernel, problem in pairs]}))
    begun, failed = time.monotonic(), ""
    try:
        daemon.call("tune", "--shapes", str(shapes), seconds=limit)
    except RuntimeError as error:
        failed = str(error)
    seconds = time.monotonic() - begun
    table = json.loads(daemon.call("export", "--all-trials", "--replayed"))
    return seconds, table, failed


def key_of(configuration):
    return json.dumps(configuration)


class Choices:
    """Of one pair: the winner of each repetition, and the times of all configurations."""

    def __init__(self, kernel, problem):
        self.kernel, self.problem = kernel, problem
        self.winners, self.times, self.ticks = [], {}, []

    def take(self, table):
        for record in table["records"]:
            if self._is_of(record):
                self.winners.append({"configuration": record["configuration"], "us": record["time_us"]})
                self.ticks.append(record["tick_us"])
        timed = {
            key_of(trial["configuration"]): trial["time_us"]
            for trial in table["trials"]
            if self._is_of(trial) and "time_us" in trial and trial["outcome"] in ("correct", "unverified")
        }
        best = min(timed.values(), default=0)
        for key, time_us in timed.items():
            self.times.setdefault(key, []).append(time_us - best * NEAR)

    def _is_of(self, row):
        problem = {**row["problem"]["dims"], **row["problem"]["types"]}
        return row["kernel"] == self.kernel and problem == self.problem

    def candidates(self):
        """Each winner, and every configuration that half of the tunings saw near their best."""
        margin = 2 * max(self.ticks, default=0)
        near = [key for key, beyond in self.times.items() if statistics.median(beyond) <= margin]
        winners = [key_of(winner["configuration"]) for winner in self.winners]
        return [json.loads(key) for key in dict.fromkeys([*winners, *near])]


def tune_repeatedly(bin_dir, pairs, repeats, limit, agent_options=()):
    """(Choices of each pair, seconds of each repetition, failures). No repetition is begun beyond `limit`
    seconds."""
    choices = [Choices(kernel, problem) for kernel, problem in pairs]
    seconds, failures = [], []
    end = time.monotonic() + limit
    with Repetitions(bin_dir, agent_options) as daemon:
        for index in range(repeats):
            if time.monotonic() + max(seconds[1:], default=0) > end:
                break
            if index:
                daemon.begin_anew()
            took, table, failed = tune_once(daemon, pairs, limit)
            seconds.append(took)
            failures += [failed] if failed else []
            for one in choices:
                one.take(table)
            print(
                f"repetition {index + 1}: {len(table['records'])} records in {took:.1f} s {failed}",
                flush=True,
            )
    return choices, seconds, failures
