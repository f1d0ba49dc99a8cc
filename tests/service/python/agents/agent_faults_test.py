"""An agent that is terminated, killed, frozen or cut off: its job ends elsewhere, and no trial is doubled.

CUBIND_AGENT_FAULTS is how often each of them happens; the default is once. The acceptance run has 50.
"""

import os
import signal
import unittest
from collections import Counter

from agents_elsewhere import Proxy, Site, until

TIMES = int(os.environ.get("CUBIND_AGENT_FAULTS", "1"))
CONFIGURATIONS = 12  # of the tiny kernel
MOST_LOST = 40  # blocks in flight and not acknowledged yet


class AgentFaultsTest(unittest.TestCase):
    def _times(self, fault):
        for number in range(TIMES):
            with self.subTest(number), Site() as site:
                # Somewhere in the job: within its search or its finalists.
                fault(site, 1 + (number * 7) % 23)

    def _begin(self, site, blocks, port=None):
        """The job runs on the first agent and has measured so many blocks; a second agent is there."""
        first = site.agent("first", port=port)
        site.submit()
        site.wait_for_blocks(1)
        site.agent("second")
        site.wait_for_blocks(blocks)
        self.assertEqual(site.job()["state"], "running", "the job ended before the fault")
        return first

    def _check(self, site, most_repeated):
        job = site.wait_for_end()
        self.assertEqual(job["state"], "done", site.log())
        trials = Counter(trial["trial"] for trial in site.trials())
        self.assertEqual(len(trials), CONFIGURATIONS)
        self.assertEqual(set(trials.values()), {1})
        self.assertLessEqual(site.repeated(), most_repeated, site.log())

    def test_terminated(self):
        def fault(site, blocks):
            first = self._begin(site, blocks)
            first.send(signal.SIGTERM)
            self.assertEqual(first.process.wait(10), 0, first.log())
            self._check(site, 0)
            self.assertIn("agent first is leaving", site.log())

        self._times(fault)

    def test_killed(self):
        def fault(site, blocks):
            self._begin(site, blocks).send(signal.SIGKILL)
            self._check(site, MOST_LOST)

        self._times(fault)

    def test_frozen(self):
        def fault(site, blocks):
            first = self._begin(site, blocks)
            first.send(signal.SIGSTOP)
            self._check(site, MOST_LOST)
            record = site.trials()
            was_lost = "taken for lost" in site.log()  # else it had just sent its last result
            first.send(signal.SIGCONT)
            if was_lost:
                until(lambda: first.log().count("works for the daemon") == 2, first.log)
            self.assertEqual(site.trials(), record)

        self._times(fault)

    def test_cut_off(self):
        def fault(site, blocks):
            with Proxy(site.port) as proxy:
                first = self._begin(site, blocks, proxy.port)
                proxy.cut()
                self._check(site, MOST_LOST)
                first.send(signal.SIGTERM)
                self.assertEqual(first.process.wait(20), 0, first.log())

        self._times(fault)

    def test_an_agent_without_work_ends_when_it_is_told_to(self):
        with Site() as site:
            agent = site.agent("short", "--exit-when-idle", "1s", wait=False)
            self.assertEqual(agent.process.wait(60), 0, agent.log())
            self.assertIn("no work for", agent.log())


if __name__ == "__main__":
    unittest.main()
