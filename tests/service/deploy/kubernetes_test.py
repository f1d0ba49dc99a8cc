"""Image and metrics in the manifests of deploy/kubernetes. kubernetes_slow.py checks their schemas."""

import pathlib
import re
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[3]
FOLDER = SOURCE / "deploy/kubernetes"


class ManifestsTest(unittest.TestCase):
    def test_the_image_has_the_version_as_its_tag_and_is_not_pulled_where_a_node_has_it(self):
        version = re.search(r"project\(cubind VERSION ([0-9.]+)", (SOURCE / "CMakeLists.txt").read_text())[1]
        self.assertRegex((FOLDER / "kustomization.yaml").read_text(), rf"newTag: {re.escape(version)}\b")
        for file in ("daemon.yaml", "agent.yaml"):
            self.assertRegex((FOLDER / file).read_text(), r"image: cubind\n +imagePullPolicy: IfNotPresent\n")

    def test_the_port_of_the_metrics_is_that_of_the_pod_and_of_the_service(self):
        text = (FOLDER / "daemon.yaml").read_text()
        port = re.search(r"--metrics=0\.0\.0\.0:(\d+)", text)[1]
        self.assertIn(f"{{name: metrics, containerPort: {port}}}", text)
        self.assertIn(f"{{name: metrics, port: {port}, targetPort: metrics}}", text)


if __name__ == "__main__":
    unittest.main()
