"""The units of deploy/systemd are sound, and cubind knows the settings of its file."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[3] / "deploy/systemd"
PROGRAMS = pathlib.Path(os.environ["CUBIND_PROGRAMS"])
INSTALLED = "/opt/cubind/bin"


class UnitTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cubind-units-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def findings(self, change=lambda text: text):
        """What systemd-analyze says of the units, with the programs of this build."""
        units = []
        for unit in sorted(SOURCE.glob("*.service")):
            units.append(self.folder / unit.name)
            text = unit.read_text()
            self.assertIn(INSTALLED, text)
            units[-1].write_text(change(text).replace(INSTALLED, str(PROGRAMS)))
        self.assertEqual(len(units), 2)
        run = subprocess.run(
            ["systemd-analyze", "--recursive-errors=no", "verify", *units], capture_output=True, text=True
        )
        return run.stdout + run.stderr + ("" if run.returncode == 0 else f"exit code {run.returncode}")

    def test_systemd_finds_nothing_wrong_with_the_units(self):
        self.assertEqual(self.findings(), "")

    def test_it_would_find_a_setting_that_it_does_not_know(self):
        self.assertIn(
            "NoNewPrivilege", self.findings(lambda text: text.replace("NewPrivileges", "NewPrivilege"))
        )

    def check_config(self, text):
        file = self.folder / "cubind.toml"
        file.write_text(text)
        command = [PROGRAMS / "cubind", "--check-config", "--config", file]
        return subprocess.run(command, capture_output=True, text=True)

    def test_cubind_knows_every_setting_of_the_file_also_those_in_comments(self):
        text = (SOURCE / "cubind.toml").read_text()
        enabled, count = re.subn(r"^# (?=[a-z-]+ = )", "", text, flags=re.MULTILINE)
        self.assertGreater(count, 5)
        for settings in (text, enabled):
            run = self.check_config(settings)
            self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn(f"tokens = /etc/cubind/tokens.json  # {self.folder}/cubind.toml", run.stdout)

    def test_a_setting_that_cubind_does_not_know_ends_the_check_with_1_and_its_name(self):
        run = self.check_config('artifact-byte = "1GiB"\n')
        self.assertEqual(run.returncode, 1)
        self.assertRegex(run.stderr, r"cubind\.toml artifact-byte: is not a setting.*artifact-bytes")


if __name__ == "__main__":
    if shutil.which("systemd-analyze") is None:
        print("systemd-analyze is missing: ./dev deps test installs it", file=sys.stderr)
        sys.exit(77)
    unittest.main()
