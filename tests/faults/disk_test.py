#!/usr/bin/python3
# disk_test.py BIN PROTO: a disk without room for logs and the state file.
#
# Twice: a small tmpfs in a mount namespace of the daemon's own (ENOSPC), where this process may make one; and RLIMIT_FSIZE,
# set from outside while the daemon runs (EFBIG, and a signal that would end it), anywhere.
import json
import os
import resource
import subprocess

import grpc
from rig.case import FaultTest, main
from rig.wait import eventually

OK = grpc.StatusCode.OK


# A command that runs a command with a tmpfs of 256 KiB at $0; None where that is not permitted.
def with_small_disk(folder):
    mount = 'mount -t tmpfs -o size=256k none "$0" && exec "$@"'
    for unshare in (["unshare", "--mount"], ["unshare", "--user", "--map-root-user", "--mount"]):
        wrapper = [*unshare, "sh", "-c", mount, folder]
        if subprocess.run([*wrapper, "true"], check=False, capture_output=True).returncode == 0:
            return wrapper
    return None


class DiskTest(FaultTest):
    def start(self, wrapper=()):
        disk = f"{self.folder}/disk"
        self.start_backends(2)
        self.log = f"{self.folder}/process.log"
        self.start_daemon(wrapper=wrapper, log=self.log, top=f'log: {{path: "{self.log}"}}\n'
                          f'access_log: {{format: json, path: "{disk}/access.log"}}\nstate_file: "{disk}/state.yaml"')
        self.disk = f"/proc/{self.daemon.pid}/root{disk}" if wrapper else disk

    def read(self, name):
        with open(f"{self.disk}/{name}", encoding="utf-8") as file:
            return file.read()

    def add(self, name):
        return self.sluicectl("add", "echo", f"{name}=127.0.0.1:9@0.01")

    # `fill`, `free`: take and give back the room. `error`: what the system says.
    def run_full(self, fill, free, error):
        client = self.client()
        self.assertEqual(client.call().code, OK)
        self.assertEqual(self.add("kept").returncode, 0)
        state = self.read("state.yaml")
        self.assertIn("kept", state)
        fill()

        load = self.load()
        self.progress(load, 300)
        refused = self.add("refused")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("state file: cannot", refused.stderr)
        self.assertIn(error, refused.stderr)
        self.assertEqual(self.names(), {"echo-1", "echo-2", "kept"})  # refused means that nothing has changed
        self.assertEqual(self.read("state.yaml"), state)
        self.assertEqual(sorted(os.listdir(self.disk)), sorted({"access.log", "state.yaml"} | self.fillers))
        self.progress(load)

        free()
        self.assertEqual(self.add("later").returncode, 0)
        self.assertIn("later", self.read("state.yaml"))
        self.progress(load, 20)
        self.assertEqual([o for o in load.stop() if o.code != OK], [])
        # The access log goes on with whole lines; only the one that filled the disk may be cut.
        self.assertEqual(client.call("the last one").code, OK)
        before = len(self.read("access.log").splitlines())
        client.call("one more")
        eventually(lambda: len(self.read("access.log").splitlines()) > before, "new lines in the access log")
        cut = 0
        for line in self.read("access.log").splitlines():
            try:
                json.loads(line)
            except ValueError:
                cut += 1
        self.assertLessEqual(cut, 1)
        with open(self.log, encoding="utf-8") as file:
            said = [line for line in file if "access.log" in line]
        self.assertTrue(any(error in line for line in said), said)
        self.assertTrue(any("lines were lost" in line for line in said), said)
        self.assertLessEqual(len(said), 10, "bounded")

    def test_no_space_left(self):
        os.mkdir(f"{self.folder}/disk")
        wrapper = with_small_disk(f"{self.folder}/disk")
        if wrapper is None:
            self.skipTest("a mount namespace is not permitted here; the other test stands for it")
        self.start(wrapper)
        self.fillers = {"filler"}

        def fill():
            with open(f"{self.disk}/filler", "wb", buffering=0) as file:
                try:
                    while True:
                        file.write(bytes(4096))
                except OSError:
                    pass
        self.run_full(fill, lambda: os.unlink(f"{self.disk}/filler"), "No space left on device")

    def test_files_may_not_grow(self):
        os.mkdir(f"{self.folder}/disk")
        self.start()
        self.fillers = set()
        # The process log is beyond it too, but it is short and is looked at when there is room again.
        size = max(len(self.read("access.log")), 1)
        self.run_full(lambda: self.daemon.limit(resource.RLIMIT_FSIZE, size),
                      lambda: self.daemon.limit(resource.RLIMIT_FSIZE, resource.RLIM_INFINITY), "File too large")

    def test_a_log_that_takes_nothing_from_the_start(self):
        self.start_backends(1)
        self.start_daemon(top='access_log: {format: text, path: "/dev/full"}')
        client = self.client()
        for _ in range(100):
            self.assertEqual(client.call().code, OK)


if __name__ == "__main__":
    main()
