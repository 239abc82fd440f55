#!/usr/bin/python3
# package_test.py SOURCE BUILD ROOT: the Debian package. lintian has nothing against it; in a fresh copy of ROOT (package_root.sh) it is
# installed, upgraded while calls go through its daemon, and purged. Everything listens on loopback.
import glob
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from concurrent import futures

import grpc

SOURCE, BUILD, ROOT = (os.path.abspath(word) for word in sys.argv[1:4])
BUILD_S, STEP_S, LONG_WAIT = 300, 120, 30
# What a purge may leave: the user that stays (deploy/debian/sluice.postrm), what dpkg and systemd's helper write for all packages.
STAYS = re.compile(r"^(etc/(passwd|group|shadow|gshadow|subuid|subgid)-?|etc/\.pwd\.lock|var/lib/dpkg/.*|var/log/dpkg\.log|var/log/alternatives\.log|"
                   r"var/cache/.*|tmp/.*|run/.*|etc/systemd.*|var/lib/systemd/deb-systemd-helper-enabled|var/lib/systemd)$")
CONFIG = """
listeners: [{address: 127.0.0.1:0}]
clusters: [{name: service, endpoints: ["127.0.0.1:%d"]}]
routes: [{cluster: service}]
admin: {grpc: "unix:/run/sluice.sock"}
"""


class Backend(grpc.GenericRpcHandler):
    def service(self, details):
        return grpc.unary_unary_rpc_method_handler(lambda request, context: request)


class Load(threading.Thread):
    """Calls one after the other until told to stop; waits until one was made."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        self.good, self.failed, self.ends = 0, [], False

    def run(self):
        call = self.channel.unary_unary("/shop.Items/Get")
        while not self.ends:
            try:
                call(b"item", timeout=LONG_WAIT)
                self.good += 1
            except grpc.RpcError as error:
                self.failed.append(str(error))

    def wait_for(self, count):
        end = time.monotonic() + LONG_WAIT
        while self.good < count and not self.failed and time.monotonic() < end:
            threading.Event().wait(0.02)
        return self.good >= count


def run(*words, **more):
    result = subprocess.run(words, capture_output=True, text=True, timeout=STEP_S, **more)
    if result.returncode != 0:
        raise AssertionError(f"{' '.join(words)}: {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout


class PackageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="sluice-package-")
        cls.debs = [cls.build("0.1.0"), cls.build("0.1.0+test2")]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def build(cls, version):
        out = os.path.join(cls.folder.name, version)
        environment = dict(os.environ, SLUICE_BUILD=BUILD, SLUICE_DEB_VERSION=version, SLUICE_TREE="worktree")
        result = subprocess.run([f"{SOURCE}/deploy/build-deb.sh", out], env=environment, capture_output=True, text=True, timeout=BUILD_S)
        assert result.returncode == 0, result.stderr
        return glob.glob(out + "/*.deb")[0]

    def test_lintian_has_nothing_against_it(self):
        result = subprocess.run(["lintian", "--allow-root", "--fail-on", "error,warning", "--tag-display-limit", "0", self.debs[0]],
                                capture_output=True, text=True, timeout=BUILD_S)
        self.assertEqual((result.returncode, result.stdout), (0, ""))

    def enter(self):
        """A root that is the test's own: a layer above ROOT that goes away with the test."""
        base = tempfile.TemporaryDirectory(prefix="sluice-root-")
        self.addCleanup(base.cleanup)
        for name in ("upper", "work", "root"):
            os.mkdir(f"{base.name}/{name}")
        run("mount", "-t", "tmpfs", "tmpfs", f"{base.name}/upper")
        self.addCleanup(run, "umount", f"{base.name}/upper")
        for name in ("up", "work"):
            os.mkdir(f"{base.name}/upper/{name}")
        self.root = f"{base.name}/root"
        run("mount", "-t", "overlay", "overlay", "-o",
            f"lowerdir={ROOT},upperdir={base.name}/upper/up,workdir={base.name}/upper/work", self.root)
        self.addCleanup(run, "umount", self.root)
        run("mount", "-t", "proc", "proc", f"{self.root}/proc")
        self.addCleanup(run, "umount", f"{self.root}/proc")
        # There is no service manager in it: packages are told to start nothing.
        with open(f"{self.root}/usr/sbin/policy-rc.d", "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\nexit 101\n")
        os.chmod(f"{self.root}/usr/sbin/policy-rc.d", 0o755)

    def inside(self, *words):
        return run("chroot", self.root, *words, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"})

    def install(self, deb):
        run("cp", deb, f"{self.root}/tmp/sluice.deb")
        self.inside("dpkg", "-i", "/tmp/sluice.deb")

    def files(self):
        out = set()
        for place, folders, names in os.walk(self.root):
            folders[:] = [name for name in folders if os.path.join(place, name) != f"{self.root}/proc"]
            out |= {os.path.relpath(os.path.join(place, name), self.root) for name in folders + names}
        return out

    def start(self, backend_port):
        with open(f"{self.root}/etc/sluice/sluice.yaml", "w", encoding="utf-8") as file:
            file.write(CONFIG % backend_port)
        daemon = subprocess.Popen(["chroot", "--userspec=sluice:sluice", self.root, "/usr/sbin/sluiced", "-c", "/etc/sluice/sluice.yaml"],
                                  stderr=subprocess.STDOUT, stdout=subprocess.PIPE, text=True)
        self.addCleanup(daemon.stdout.close)
        self.addCleanup(daemon.wait)
        self.addCleanup(daemon.kill)
        for line in daemon.stdout:
            found = re.search(r"listening on 127\.0\.0\.1:(\d+)", line)
            if found:
                threading.Thread(target=daemon.stdout.read, daemon=True).start()
                return daemon, int(found[1])
        raise AssertionError("the daemon ended before it listened")

    def test_install_upgrade_under_load_and_purge(self):
        self.enter()
        before = self.files()
        self.install(self.debs[0])
        self.assertIn("sluice:x:", self.inside("getent", "passwd", "sluice"))
        self.assertEqual(self.inside("sluiced", "--check", "-c", "/etc/sluice/sluice.yaml"), "OK\n")
        self.assertIn("sluiced.service", "\n".join(self.files()))
        os.chmod(f"{self.root}/run", 0o777)
        for name in ("lib", "log"):
            self.inside("install", "-d", "-o", "sluice", f"/var/{name}/sluice")
            self.inside("touch", f"/var/{name}/sluice/left")

        server = grpc.server(futures.ThreadPoolExecutor(4), handlers=(Backend(),))
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        self.addCleanup(server.stop, None)
        daemon, proxy_port = self.start(port)
        load = Load(proxy_port)
        load.start()
        self.assertTrue(load.wait_for(100), load.failed)
        inode = os.stat(f"{self.root}/usr/sbin/sluiced").st_ino

        begun = load.good
        self.install(self.debs[1])
        self.assertGreater(load.good, begun, "no call went through while dpkg worked")
        self.assertIn("0.1.0+test2", self.inside("dpkg-query", "-W", "-f", "${Version}", "sluice"))
        self.assertNotEqual(os.stat(f"{self.root}/usr/sbin/sluiced").st_ino, inode, "dpkg did not replace the file")
        self.assertIsNone(daemon.poll())
        self.assertTrue(load.wait_for(load.good + 100), load.failed)
        with open(f"{self.root}/etc/sluice/sluice.yaml", encoding="utf-8") as file:
            self.assertEqual(file.read(), CONFIG % port, "the upgrade has changed the operator's file")
        # The new program takes the address over when the operator says so, and what ends then ends well.
        self.inside("sluicectl", "--address", "unix:/run/sluice.sock", "status")
        load.ends = True
        load.join(LONG_WAIT)
        self.assertEqual(load.failed, [])
        daemon.terminate()
        self.assertEqual(daemon.wait(LONG_WAIT), 0)
        daemon, proxy_port = self.start(port)
        load = Load(proxy_port)
        load.start()
        self.assertTrue(load.wait_for(100), load.failed)
        load.ends = True
        load.join(LONG_WAIT)
        # And back: the older version again, as a roll back does it.
        daemon.terminate()
        self.assertEqual(daemon.wait(LONG_WAIT), 0)
        self.install(self.debs[0])
        self.assertEqual(self.inside("dpkg-query", "-W", "-f", "${Version}", "sluice"), "0.1.0")
        self.assertEqual(self.inside("sluiced", "--check", "-c", "/etc/sluice/sluice.yaml"), "OK\n")

        self.inside("dpkg", "--purge", "sluice")
        left = sorted(name for name in self.files() - before if not STAYS.match(name))
        self.assertEqual(left, [], "the purge has left these")
        self.assertEqual(sorted(name for name in before - self.files() if not STAYS.match(name)), [], "the purge has taken these")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
