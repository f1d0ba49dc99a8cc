"""python3 by_cubind.py BIN: the seconds from `cubindctl tune` to its end, the record stored."""

import json
import pathlib
import shutil
import sys
import tempfile
import time

from problem import KERNELS, TUNABLES, D, N

sys.path.append(str(pathlib.Path(__file__).parents[1] / "common"))
from daemon import Daemon

with tempfile.TemporaryDirectory(prefix="cubind-tuning.") as folder:
    kernels = pathlib.Path(folder) / "variants"
    shutil.copytree(KERNELS, kernels / "rmsnorm")
    shutil.copytree(KERNELS.parent / "common", kernels / "common")
    file = kernels / "rmsnorm" / "rmsnorm_forward.json"
    spec = json.loads(file.read_text())
    spec |= {"name": "rmsnorm_48", "tunables": TUNABLES, "constraints": [], "default": spec["default"][:1]}
    file.write_text(json.dumps(spec))
    (kernels / "rmsnorm" / "rmsnorm_backward.json").unlink()
    with Daemon(sys.argv[1], ["--kernels", str(kernels)]) as daemon:
        while not daemon.offers_gpu():
            time.sleep(0.1)
        time.sleep(1)  # the agent's workers start
        problem = {"N": N, "D": D, "T": "bf16"}
        seconds = daemon.tune("rmsnorm_48", problem)
        plan = daemon.get("rmsnorm_48", problem)[1]
        [job] = json.loads(daemon.call("jobs", "--all", "--json"))["jobs"]
        stages = json.loads(daemon.call("jobs", "show", job["id"], "--json"))["stages_ms"]
        result = {"seconds": seconds, "winner": plan["configuration"], "us": plan["provenance"]["time_us"]}
        print(json.dumps(result | {"stages_ms": stages}))
