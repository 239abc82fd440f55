#!/usr/bin/python3
# access_log_test.py BIN PROTO: the last lines of the access log: at SIGTERM, at kill -9, and where no process reads the pipe.
import json
import os
import re
import subprocess
import threading
import time

import grpc
from rig.case import FaultTest, main
from rig.process import Daemon
from rig.wait import LONG_WAIT, eventually

OK = grpc.StatusCode.OK
PROMISED = 0.1  # seconds after a call's end its line is on its way to the file
LOADED = 0.4  # what a machine may add that runs other tests too


# With a pipe as its standard output and error, which no process reads.
class PipedDaemon(Daemon):
    def start(self):
        self.read_end, write_end = os.pipe()
        open(self.output, "wb").close()
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=write_end, stderr=write_end)
        os.close(write_end)
        self.said(r"sluiced \S+ is ready")


class AccessLogTest(FaultTest):
    def start(self):
        self.start_backends(1)
        self.file = f"{self.folder}/access.log"
        self.start_daemon(top=f'access_log: {{format: json, path: "{self.file}"}}')

    def lines(self):
        with open(self.file, encoding="utf-8") as file:
            return [json.loads(line) for line in file]  # each is whole

    def test_a_stop_loses_no_line(self):
        self.start()
        client = self.client()
        for number in range(500):
            self.assertEqual(client.call(f"call {number}").code, OK)
        client.close()
        self.assertEqual(self.daemon.stop(), 0)
        self.assertEqual(len(self.lines()), 500)

    def test_a_kill_loses_what_has_ended_just_before(self):
        self.start()
        ended, stopped = [], threading.Event()

        def call():
            client = self.client()
            while not stopped.is_set():
                if client.call().code == OK:
                    ended.append(time.monotonic())
        thread = threading.Thread(target=call)
        thread.start()
        eventually(lambda: len(ended) > 1000, "calls")
        killed = time.monotonic()
        self.daemon.kill()
        stopped.set()
        thread.join()
        early = [at for at in ended if at < killed - PROMISED - LOADED]
        self.assertGreaterEqual(len(self.lines()), len(early))

    def test_a_line_comes_by_itself(self):
        self.start()
        self.assertEqual(self.client().call().code, OK)
        eventually(self.lines, "the line of the call")

    def test_a_pipe_that_is_not_read_delays_neither_calls_nor_the_end(self):
        self.start_backends(1)
        log = f"{self.folder}/process.log"
        self.listen = f"{self.host()}:0"
        self.write_config(top=f'log: {{path: "{log}"}}\naccess_log: {{format: json, buffer: 256KiB}}')
        self.daemon = PipedDaemon(self.bin, f"{self.folder}/sluice.yaml", f"{self.folder}/daemon.out", log=log)
        self.daemon.start()
        self.listen = self.daemon.address()
        client = self.client()
        for _ in range(3000):  # far more than the pipe and the buffer hold
            self.assertEqual(client.call().code, OK)
        client.close()
        began = time.monotonic()
        self.assertEqual(self.daemon.stop(), 0)
        self.assertLess(time.monotonic() - began, LONG_WAIT / 2)
        # Each call has a line in the pipe, or is counted.
        with os.fdopen(self.daemon.read_end, encoding="utf-8") as pipe:
            read = len([json.loads(line) for line in pipe if line.endswith("\n")])
        lost = sum(int(count) for count in re.findall(r"; (\d+) lines were lost", self.daemon.text()))
        self.assertGreater(lost, 0)
        self.assertEqual(read + lost, 3000)

    def test_a_process_log_that_is_not_read_does_not_keep_the_process_from_its_end(self):
        self.start_backends(1)
        self.listen = f"{self.host()}:0"
        self.write_config(top="log: {level: trace}")
        ready = f"{self.folder}/admin.sock"
        self.daemon = PipedDaemon(self.bin, f"{self.folder}/sluice.yaml", f"{self.folder}/daemon.out")
        self.daemon.said = lambda pattern: eventually(lambda: os.path.exists(ready), "the admin socket")
        self.daemon.start()
        self.connect_admin()
        capacity = 65536
        for _ in range(capacity // 40):  # each leaves lines
            self.ask("SetLogLevel", level="trace")
        self.assertEqual(self.daemon.stop(), 0)
        os.close(self.daemon.read_end)


if __name__ == "__main__":
    main()
