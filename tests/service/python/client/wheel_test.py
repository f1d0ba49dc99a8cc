"""The extras of the wheel bring what messages and the demo name."""

import pathlib
import re
import tomllib
import unittest

import running
from cubind import demo


def extra(name):
    """The names of the packages of an extra."""
    project = tomllib.loads((running.SOURCE / "python/pyproject.toml").read_text())["project"]
    return {re.match(r"[\w-]+", line)[0] for line in project["optional-dependencies"][name]}


def gpu_with_driver(cuda):
    return {"driver": {"cuda": cuda}}


class Extras(unittest.TestCase):
    def test_the_packages_that_a_message_for_a_missing_header_names_are_in_the_extras(self):
        source = pathlib.Path(running.SOURCE / "tuner/worker/missing_header.cpp").read_text()
        named = set(re.findall(r'"(nvidia-cuda-[\w-]+)"', source))
        self.assertGreaterEqual(len(named), 6)
        self.assertEqual({name for name in named if name.endswith("-cu12")} - extra("cuda12"), set())
        self.assertEqual({name for name in named if not name.endswith("-cu12")} - extra("cuda13"), set())


class DemosWheels(unittest.TestCase):
    def names(self, gpu):
        return {re.match(r"[\w-]+", wheel)[0] for wheel in demo._wheels(gpu)}

    def test_they_are_of_the_extras(self):
        self.assertLessEqual(self.names(None), extra("cuda13"))
        self.assertLessEqual(self.names(gpu_with_driver(12040)), extra("cuda12"))

    def test_no_release_is_newer_than_the_driver(self):
        self.assertEqual({w.split(">=")[1] for w in demo._wheels(gpu_with_driver(13010))}, {"13,<13.2"})
        self.assertEqual({w.split("<")[1] for w in demo._wheels(gpu_with_driver(12040))}, {"12.5"})
