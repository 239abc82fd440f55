#!/usr/bin/python3
# image_test.py SOURCE BUILD: the container image. Its size, its user, that it holds no more than it needs, and that the daemon works as
# PID 1 of namespaces of its own with a root that cannot be written, and ends by SIGTERM as it should. Needs root; loopback only.
import glob
import hashlib
import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

SOURCE, BUILD = (os.path.abspath(word) for word in sys.argv[1:3])
BYTES_MAX, BUILD_S, LONG_WAIT = 40_000_000, 120, 30


class ImageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="sluice-image-")
        cls.image, cls.root = cls.folder.name + "/image", cls.folder.name + "/root"
        result = subprocess.run([SOURCE + "/deploy/build-image.sh", cls.image], env=dict(os.environ, SLUICE_BUILD=BUILD),
                                capture_output=True, text=True, timeout=BUILD_S)
        assert result.returncode == 0, result.stdout + result.stderr
        manifest = cls.blob(cls.load("index.json")["manifests"][0])
        cls.config = cls.blob(manifest["config"])
        layer = cls.path(manifest["layers"][0])
        with tarfile.open(layer) as tar:
            cls.members = tar.getmembers()
            tar.extractall(cls.root, numeric_owner=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def load(cls, name):
        with open(f"{cls.image}/{name}", encoding="utf-8") as file:
            return json.load(file)

    @classmethod
    def path(cls, descriptor):
        return f"{cls.image}/blobs/sha256/{descriptor['digest'].split(':')[1]}"

    @classmethod
    def blob(cls, descriptor):
        with open(cls.path(descriptor), encoding="utf-8") as file:
            return json.load(file)

    def test_it_is_small_and_has_what_it_needs_and_no_more(self):
        self.assertLess(sum(member.size for member in self.members), BYTES_MAX)
        files = {member.name for member in self.members if member.isfile()}
        other = {name for name in files if not name.startswith(("usr/lib/", "lib64/"))}
        self.assertEqual(other, {"usr/sbin/sluiced", "usr/bin/sluicectl", "etc/ssl/certs/ca-certificates.crt", "etc/passwd", "etc/group",
                                 "etc/nsswitch.conf", "etc/sluice/sluice.yaml"})
        self.assertTrue(all(".so" in name for name in files - other))
        self.assertEqual([member.name for member in self.members if member.mode & 0o6000], [], "set-uid")
        self.assertEqual([member.name for member in self.members if member.mode & 0o002], ["tmp"])

    def test_each_blob_is_what_its_name_says(self):
        for file in glob.glob(self.image + "/blobs/sha256/*"):
            with open(file, "rb") as data:
                self.assertEqual(hashlib.sha256(data.read()).hexdigest(), os.path.basename(file))

    def test_the_user_has_no_rights(self):
        self.assertEqual(self.config["config"]["User"], "65532:65532")
        self.assertEqual(self.config["config"]["StopSignal"], "SIGTERM")

    def start(self):
        uid = self.config["config"]["User"].split(":")[0]
        words = self.config["config"]["Entrypoint"] + self.config["config"]["Cmd"]
        script = f"""set -e
mount --make-rprivate /
mount --bind {self.root} {self.root}
mount -t tmpfs -o mode=700,uid={uid},gid={uid} tmpfs {self.root}/run/sluice
mount -o remount,bind,ro {self.root}
ip link set lo up
exec env -i {' '.join(self.config['config']['Env'])} chroot --userspec={uid}:{uid} --groups= {self.root} {' '.join(words)}
"""
        daemon = subprocess.Popen(["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "bash", "-c", script], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(daemon.stdout.close)
        self.addCleanup(daemon.wait)
        self.addCleanup(daemon.kill)
        seen = ""
        for line in daemon.stdout:
            seen += line
            if "is ready" in line:
                with open(f"/proc/{daemon.pid}/task/{daemon.pid}/children", encoding="utf-8") as file:
                    return daemon, int(file.read().split()[0]), seen
        raise AssertionError(seen)

    def test_as_pid_1_with_a_root_that_cannot_be_written(self):
        daemon, pid, seen = self.start()
        self.assertNotIn("runs as root", seen)
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            status = dict(line.split(":", 1) for line in file.read().splitlines())
        self.assertEqual(status["NSpid"].split()[-1], "1")
        self.assertEqual(set(status["Uid"].split()), {"65532"})
        self.assertEqual(int(status["CapEff"], 16), 0)
        answer = subprocess.run(["nsenter", "-t", str(pid), "--mount", "--net", "--pid", "--root", "-S", "65532", "-G", "65532",
                                 "/usr/bin/sluicectl", "--address", "unix:/run/sluice/admin.sock", "wait-ready"],
                                capture_output=True, text=True, timeout=LONG_WAIT)
        self.assertEqual((answer.returncode, answer.stderr), (0, ""))
        with self.assertRaises(OSError) as caught:
            open(f"/proc/{pid}/root" + "/tmp/x", "w", encoding="utf-8").close()
        self.assertIn("Read-only file system", str(caught.exception))
        begun = time.monotonic()
        os.kill(pid, signal.SIGTERM)
        self.assertEqual(daemon.wait(LONG_WAIT), 0, "unshare passes on how PID 1 has ended")
        self.assertLess(time.monotonic() - begun, 10)
        self.assertIn("drained: stopping", daemon.stdout.read())


if __name__ == "__main__":
    if os.geteuid() != 0:
        sys.exit("image_test needs root: it makes namespaces")
    unittest.main(argv=sys.argv[:1])
