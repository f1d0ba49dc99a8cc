"""The manifests of deploy/kubernetes are what the API's schemas allow, and agree with each other."""

import pathlib
import sys
import unittest

try:
    import kubernetes_validate
    import yaml
except ImportError:
    print("test skipped: kubernetes-validate is missing: ./dev deps kubernetes")
    sys.exit(77)

FOLDER = pathlib.Path(__file__).resolve().parents[3] / "deploy" / "kubernetes"
VERSIONS = ("1.29", "1.37")  # the oldest and the newest that are checked


def objects():
    for file in ("daemon.yaml", "agent.yaml"):
        yield from yaml.safe_load_all((FOLDER / file).read_text())


def pod(kind):
    return next(one for one in objects() if one["kind"] == kind)["spec"]["template"]["spec"]


class ManifestsTest(unittest.TestCase):
    def test_each_object_is_valid(self):
        for version in VERSIONS:
            for one in objects():
                with self.subTest(one["kind"], version=version):
                    kubernetes_validate.validate(one, version, strict=True)

    def test_an_unknown_field_is_refused(self):
        broken = next(objects())
        broken["spec"]["prots"] = []
        with self.assertRaises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(broken, VERSIONS[-1], strict=True)

    def test_secrets_hold_the_files_that_the_pods_name(self):
        kustomization = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
        made = {one["name"]: set(one["files"]) for one in kustomization["secretGenerator"]}
        for kind in ("StatefulSet", "Job"):
            spec = pod(kind)
            secret = next(one["secret"] for one in spec["volumes"] if "secret" in one)["secretName"]
            container = spec["containers"][0]
            texts = container["args"] + [one["value"] for one in container.get("env", [])]
            named = {text.split("/etc/cubind/")[1] for text in texts if "/etc/cubind/" in text}
            self.assertEqual(named, made[secret])

    def test_the_agent_reaches_the_service_of_the_daemon(self):
        service = next(one for one in objects() if one["kind"] == "Service")
        address = f"tls://{service['metadata']['name']}:{service['spec']['ports'][0]['port']}"
        self.assertIn(f"--address={address}", pod("Job")["containers"][0]["args"])


if __name__ == "__main__":
    unittest.main()
