#!/usr/bin/python3
# clock_test.py BIN PROTO SHIM: jumps of the wall clock, and monotonic clocks that have just begun or run for decades.
#
# SHIM (wall_clock.c) is loaded into the daemon and moves what it reads as the wall clock; the system's own is left alone.
# The monotonic clock is moved by a time namespace of the daemon's own.
import os
import re
import subprocess
import sys
import time
import unittest

import grpc
from rig.case import FaultTest, main
from rig.wait import eventually

OK, DEADLINE = grpc.StatusCode.OK, grpc.StatusCode.DEADLINE_EXCEEDED
SHIM = sys.argv.pop(3)
DAY = 24 * 3600
# Forwards and back, by a little and by much.
JUMPS = [1, -1, 3600, -3600, 400 * DAY, -400 * DAY, 10 * 365 * DAY, 0]


class ClockTest(FaultTest):
    def checks(self, client):
        self.assertEqual(client.call(delay_ms=100).code, OK)
        # Deadlines are neither early nor late. The client's own would be at its timeout, so the server's side is looked at.
        reply = client.unary(self.echo.EchoRequest(), metadata=[("x-key", "a")], timeout=100)
        self.assertGreater(reply.time_left_ms, 90000)
        self.assertLess(reply.time_left_ms, 102000)  # gRPC rounds up to seconds
        begun = time.monotonic()
        self.assertEqual(client.call("a", timeout=0.3, delay_ms=3600000).code, DEADLINE)
        self.assertLess(time.monotonic() - begun, 20)
        eventually(lambda: self.ask("GetServer").calls_in_flight == 0, "the call is over in the proxy too")

    def test_the_wall_clock_jumps_while_calls_run(self):
        clock = f"{self.folder}/clock"

        def jump(seconds):
            with open(f"{clock}.new", "w", encoding="ascii") as file:
                file.write(str(seconds))
            os.rename(f"{clock}.new", clock)
        jump(0)
        self.start_backends(2)
        self.start_daemon(
            cluster="idle_timeout: 1h\n    headers_timeout: 10s\n    rate_limit: {rate: 100000, burst: 1000}",
            listener="keepalive: {interval: 30s, timeout: 20s}, age_max: 1h",
            top='access_log: {format: json, path: "%s/access.log"}' % self.folder,
            environment={"LD_PRELOAD": SHIM, "SLUICE_TEST_CLOCK": clock})
        client = self.client()
        self.assertEqual(client.call().code, OK)
        held = client.begin("held", delay_ms=4000)
        load = self.load()
        for seconds in JUMPS:
            jump(seconds)
            self.progress(load, 30)
            self.checks(client)
            self.assertEqual(self.ask("GetServer").ready, True)
            # The daemon did see the jump: that is what its log lines are dated by.
            self.assertEqual(self.year_of_last_line(), time.gmtime(time.time() + seconds).tm_year, seconds)
        self.assertEqual(client.finish(*held).code, OK)
        self.assertEqual([o for o in load.stop() if o.code != OK], [])
        # No peer was sent away by a clock, on either side.
        self.assertEqual(self.metric("sluice_downstream_timeouts_total"), 0)
        self.assertEqual(self.metric("sluice_upstream_timeouts_total"), 0)
        # The calls that were to pass their deadline, in the proxy or, a moment earlier, in the client.
        errors = self.ask("GetMetrics").text.split("# HELP sluice_proxy_errors_total")[1].split("# HELP")[0]
        reasons = set(re.findall(r'reason="(\w+)"\} [1-9]', errors))
        self.assertLessEqual(reasons, {"deadline", "cancelled"})

    def year_of_last_line(self):
        with open(f"{self.folder}/access.log", encoding="utf-8") as file:
            return int(re.search(r'"time":"(\d+)', file.readlines()[-1]).group(1))

    # `offset`: seconds to be added to the monotonic clock.
    def with_monotonic_clock(self, offset):
        for user in ([], ["--user", "--map-root-user"]):
            wrapper = ["unshare", *user, "--time", "--monotonic", str(offset), "--fork", "--kill-child"]
            if subprocess.run([*wrapper, "true"], check=False, capture_output=True).returncode == 0:
                return wrapper
        raise unittest.SkipTest("a time namespace is not permitted here")

    def run_at(self, offset):
        wrapper = self.with_monotonic_clock(offset)
        self.start_backends(2)
        self.start_daemon(wrapper=wrapper)
        client = self.client()
        self.checks(client)
        self.backends[0].kill()
        eventually(lambda: self.endpoint("echo-1").connections == 0, "the proxy sees it")
        self.assertEqual({client.call(f"key-{i}").code for i in range(50)}, {OK})  # back-off works
        self.backends[0].start()
        eventually(lambda: "echo-1" in {client.call(f"key-{i}").backend for i in range(20)}, "it gets calls again")

    def test_a_monotonic_clock_that_has_just_begun(self):
        self.run_at(-int(time.monotonic()) + 1)

    def test_a_monotonic_clock_after_a_hundred_years(self):
        self.run_at(100 * 365 * DAY)


if __name__ == "__main__":
    main()
