"""python3 by_cubind_triton.py BIN: the same as by_triton.py, unedited, under `python -m cubind.triton`."""

import json
import os
import pathlib
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
from daemon import Daemon

PROGRAM = pathlib.Path(__file__).parent / "by_triton.py"
STARTED_S = 8  # the agent's workers, which import Triton

with Daemon(sys.argv[1], ["--triton-python", sys.executable]) as daemon:
    while not daemon.offers_gpu():
        time.sleep(0.1)
    time.sleep(STARTED_S)
    run = subprocess.run(
        [sys.executable, "-m", "cubind.triton", PROGRAM],
        env={**os.environ, "CUBIND_ADDRESS": daemon.address},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    result = json.loads(run.stdout.splitlines()[-1])
    jobs = json.loads(daemon.call("jobs", "--all", "--json"))["jobs"]
    [tuning] = [job["id"] for job in jobs if job["kind"] == "tune"]
    result["stages_ms"] = json.loads(daemon.call("jobs", "show", tuning, "--json"))["stages_ms"]
    [record] = json.loads(daemon.call("export"))["records"]
    result["us"] = record["time_us"]
    print(json.dumps(result))
