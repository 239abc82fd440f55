#!/usr/bin/python3
# kubernetes_test.py SOURCE BUILD: the manifests of deploy/kubernetes: what a sidecar must have stands in them, with names and ports that
# fit each other, and the daemon finds nothing wrong with the configuration in them. There is no schema of Kubernetes here to judge by.
import glob
import os
import re
import subprocess
import sys
import tempfile
import unittest

import yaml

SOURCE, BUILD = (os.path.abspath(word) for word in sys.argv[1:3])
CHECK_S = 30
SECONDS = re.compile(r"^(\d+)s$")


class KubernetesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.objects = []
        for file in sorted(glob.glob(SOURCE + "/deploy/kubernetes/*.yaml")):
            with open(file, encoding="utf-8") as text:
                cls.objects += list(yaml.safe_load_all(text))
        cls.kinds = {item["kind"]: item for item in cls.objects}
        cls.text = cls.kinds["ConfigMap"]["data"]["sluice.yaml"]
        cls.config = yaml.safe_load(cls.text)
        cls.pod = cls.kinds["Deployment"]["spec"]["template"]["spec"]
        cls.sidecar = cls.pod["initContainers"][0]

    def test_each_object_says_what_it_is(self):
        versions = {"ConfigMap": "v1", "Deployment": "apps/v1", "NetworkPolicy": "networking.k8s.io/v1"}
        self.assertEqual({item["kind"]: item["apiVersion"] for item in self.objects}, versions)
        self.assertTrue(all(item["metadata"]["name"] for item in self.objects))

    def test_the_daemon_takes_the_configuration(self):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(self.text)
            file.flush()
            result = subprocess.run([BUILD + "/bin/sluiced", "--check", "-c", file.name], capture_output=True, text=True, timeout=CHECK_S)
        self.assertEqual((result.returncode, result.stdout), (0, "OK\n"), result.stderr)

    def test_it_is_a_native_sidecar_that_drains(self):
        self.assertEqual(self.sidecar["restartPolicy"], "Always")
        self.assertNotIn("lifecycle", self.sidecar, "preStop runs when the pod begins to end: see sidecar_order_test.py")
        drain = int(SECONDS.match(self.config["drain_timeout"])[1])
        self.assertLess(drain + 5, self.pod["terminationGracePeriodSeconds"], "docs/production.md: below it by a few seconds")

    def test_probes_ask_what_the_configuration_offers(self):
        port = int(self.config["admin"]["http"].rsplit(":", 1)[1])
        named = {item["name"]: item["containerPort"] for item in self.sidecar["ports"]}
        for probe, path in (("readinessProbe", "/readyz"), ("livenessProbe", "/healthz")):
            get = self.sidecar[probe]["httpGet"]
            self.assertEqual((get["path"], named[get["port"]]), (path, port))
        self.assertEqual(self.sidecar["startupProbe"]["exec"]["command"][:2], ["/usr/bin/sluicectl", "wait-ready"])
        self.assertEqual([rule["ports"] for rule in self.kinds["NetworkPolicy"]["spec"]["ingress"] if "from" in rule],
                         [[{"protocol": "TCP", "port": port}]])

    def test_the_policy_leaves_the_ports_of_the_application_open(self):
        served = {port["name"] for container in self.pod["containers"] for port in container["ports"]}
        open_to_all = {port["port"] for rule in self.kinds["NetworkPolicy"]["spec"]["ingress"] if "from" not in rule for port in rule["ports"]}
        self.assertEqual(open_to_all, served)
        self.assertTrue(served)

    def test_it_has_no_rights_and_a_bound_on_what_it_uses(self):
        security = self.sidecar["securityContext"]
        self.assertEqual((security["runAsNonRoot"], security["readOnlyRootFilesystem"], security["allowPrivilegeEscalation"]),
                         (True, True, False))
        self.assertEqual(security["capabilities"], {"drop": ["ALL"]})
        self.assertEqual(security["seccompProfile"], {"type": "RuntimeDefault"})
        self.assertEqual(set(self.sidecar["resources"]["limits"]), {"cpu", "memory"})
        for container in self.pod["containers"]:
            self.assertIn("memory", container["resources"]["limits"])

    def test_the_memory_limit_is_twice_what_calls_may_hold(self):
        mebibytes = lambda text: int(re.match(r"^(\d+)Mi", text)[1])
        limit = mebibytes(self.sidecar["resources"]["limits"]["memory"])
        self.assertGreaterEqual(limit, 2 * mebibytes(self.config["memory"]["buffered_bytes_max"]))

    def test_what_is_mounted_is_there_and_where_the_daemon_looks(self):
        volumes = {item["name"]: item for item in self.pod["volumes"]}
        mounts = {item["mountPath"]: volumes[item["name"]] for item in self.sidecar["volumeMounts"]}
        self.assertEqual(mounts["/etc/sluice"]["configMap"]["name"], self.kinds["ConfigMap"]["metadata"]["name"])
        self.assertIn("emptyDir", mounts[os.path.dirname(self.config["admin"]["grpc"].removeprefix("unix:"))])
        self.assertTrue(self.config["listeners"][0]["address"].startswith("127.0.0.1:"), "clients are in the pod")

    def test_labels_fit(self):
        deployment, policy = self.kinds["Deployment"]["spec"], self.kinds["NetworkPolicy"]["spec"]
        labels = deployment["template"]["metadata"]["labels"]
        self.assertEqual(deployment["selector"]["matchLabels"], labels)
        self.assertEqual(policy["podSelector"]["matchLabels"], labels)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
