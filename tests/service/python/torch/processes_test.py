"""Training jobs: ranks that torchrun starts, and the workers of a DataLoader. Needs torch."""

import json

import torch_found  # noqa: F401  first: it looks for a Python with torch

# isort: split
import cubind
import cubind.torch as operators
import running
import torch
import torch.utils.data
from tuned_daemon import WithDaemon

PROBLEM = {"N": 4096, "K": 3, "T": "f32"}

# Rank 0 asks first; then the table changes; then both ask, by clients that remember nothing.
RANK = """
import json, sys, cubind, torch.distributed as distributed
from cubind.torch import settings
address, device = sys.argv[1:]
distributed.init_process_group("gloo")
rank = distributed.get_rank()
PROBLEM = {"N": 4096, "K": 3, "T": "f32"}

def ask(**options):
    with cubind.connect(address, timeout=60) as client:
        answer = client.get("scale", PROBLEM, device=device, tune=False, **options)
        return [answer.evidence, answer.configuration]

if rank == 0:
    ask()
distributed.barrier()
if rank == 1:
    with cubind.connect(address, timeout=60) as client:
        (tuned,) = client.tune([{"kernel": "scale", **PROBLEM}], device=device, progress=False)
        assert tuned.state == "done", tuned
distributed.barrier()
print(json.dumps({"rank": rank, "ours": ask(), "now": ask(job=""), "strict": settings.strict}), flush=True)
"""


class Items(torch.utils.data.Dataset):
    """Each item asks the daemon and calls an operator, in the worker's process."""

    def __init__(self, address, device):
        self.address, self.device = address, device

    def __len__(self):
        return 64

    def __getitem__(self, index):
        with cubind.connect(self.address, timeout=running.PATIENCE) as client:
            answer = client.get("scale", {**PROBLEM, "N": 3000 + index}, device=self.device, tune=False)
        y = operators.rms_norm(torch.full((1, 8), 2.0), (8,), torch.ones(8))
        return answer.problem["N"] + round(y.sum().item())


class Processes(WithDaemon):
    def test_all_ranks_of_a_job_get_the_answers_of_one_generation(self):
        script = self.daemon.folder / "rank.py"
        script.write_text(RANK)
        launch = ["-m", "torch.distributed.run", "--nproc-per-node", "2", "--rdzv-backend", "c10d"]
        launch += ["--rdzv-id", "job17", "--rdzv-endpoint", "localhost:0", script]
        run = running.run_python_for_both([*launch, self.daemon.address, self.device])
        ranks = [json.loads(line[line.index("{") :]) for line in run.stdout.splitlines() if "{" in line]
        self.assertEqual(sorted(rank["rank"] for rank in ranks), [0, 1])
        self.assertEqual({rank["ours"][0] for rank in ranks}, {"none"})  # as before the tuning
        self.assertEqual({rank["now"][0] for rank in ranks}, {"replayed"})
        self.assertEqual(ranks[0]["ours"], ranks[1]["ours"])
        self.assertEqual([rank["strict"] for rank in ranks], [True, True])

    def load(self, workers, context):
        loader = torch.utils.data.DataLoader(
            Items(self.daemon.address, self.device), batch_size=2, num_workers=workers,
            multiprocessing_context=context, timeout=4 * running.PATIENCE,
        )  # fmt: skip
        return [int(n) for batch in loader for n in batch]

    def test_32_forked_workers_and_a_spawned_one(self):
        expected = [3000 + index + 8 for index in range(64)]
        # gRPC's threads are there.
        self.client.get("scale", {**PROBLEM, "N": 3000}, device=self.device, tune=False)
        self.assertEqual(self.load(32, "fork"), expected)
        self.assertEqual(self.load(1, "spawn"), expected)
        self.client.status()
