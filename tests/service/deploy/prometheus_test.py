"""The dashboard and the alert rules of deploy/prometheus name metrics and labels that the daemon has."""

import json
import pathlib
import re
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[3]
FOLDER = SOURCE / "deploy/prometheus"
# What Prometheus adds itself.
ADDED = {"instance", "le"}


def documented() -> dict[str, set[str]]:
    """The labels of each metric, from the table that metrics_test.cpp compares with the daemon's page."""
    rows = re.findall(
        r"^\| `(cubind_\w+)` \| \w+ \| .* \|([^|]*)\|$", (SOURCE / "docs/daemon.md").read_text(), re.M
    )
    return {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in rows}


def expressions() -> list[str]:
    panels = json.loads((FOLDER / "grafana.json").read_text())["panels"]
    text = (FOLDER / "alerts.yaml").read_text()
    rules = re.findall(r"expr: (?:>-\n)?((?:.|\n)+?)\n +(?:for|annotations):", text)
    assert len(rules) == text.count("- alert:")
    return [target["expr"] for panel in panels for target in panel["targets"]] + rules


class PrometheusTest(unittest.TestCase):
    def test_every_metric_and_label_is_documented(self):
        known = documented()
        for expression in expressions():
            names = re.findall(r"\bcubind_\w+", expression)
            self.assertTrue(names, expression)
            labels = set(re.findall(r"(\w+)=~?\"", expression))
            for group in re.findall(r"by \(([^)]*)\)", expression):
                labels |= set(re.split(r", *", group))
            for name in names:
                metric = name.removesuffix("_bucket")
                self.assertIn(metric, known, expression)
                self.assertLessEqual(labels - ADDED, known[metric], expression)

    def test_panels_do_not_overlap_and_have_questions_as_titles(self):
        cells = set()
        for panel in json.loads((FOLDER / "grafana.json").read_text())["panels"]:
            self.assertTrue(panel["title"].endswith("?"))
            area = panel["gridPos"]
            taken = {
                (x, y)
                for x in range(area["x"], area["x"] + area["w"])
                for y in range(area["y"], area["y"] + area["h"])
            }
            self.assertFalse(cells & taken, panel["title"])
            cells |= taken


if __name__ == "__main__":
    unittest.main()
