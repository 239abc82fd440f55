#!/usr/bin/python3
# backends_test.py BIN PROTO: what clients see when a backend dies, hangs, or has no room for one more connection.
import socket
import time

import grpc
from rig.case import FaultTest, main
from rig.wait import eventually

OK, UNAVAILABLE, DEADLINE = grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED
HELD = 8
HOUR_MS = 3600000


class BackendsTest(FaultTest):
    def failed(self, outcomes):
        return [o for o in outcomes if o.code != OK]

    def hold_calls(self, client, key, backend):
        before = self.endpoint(backend.name).in_flight
        held = [client.begin(key, delay_ms=HOUR_MS) for _ in range(HELD)]
        eventually(lambda: self.endpoint(backend.name).in_flight >= before + HELD, "calls held at the backend")
        return held

    def test_a_killed_backend_costs_only_the_calls_it_had(self):
        self.start_backends(3)
        self.start_daemon()
        victim = self.backends[1]
        client = self.client()
        held = self.hold_calls(client, self.key_of(client, victim.name), victim)
        threads = 4
        load = self.load(threads=threads)
        self.progress(load, 200)

        victim.kill()
        eventually(lambda: self.endpoint(victim.name).connections == 0, "the proxy sees it")
        seen = time.monotonic()
        in_flight = [client.finish(*call) for call in held]
        self.progress(load, 300)
        self.assertEqual({(o.code, o.reason) for o in in_flight}, {(UNAVAILABLE, "connection_lost")}, in_flight[0])
        # Calls that were at it, and those that came between its death and the moment each of two workers saw it.
        failed = self.failed(load.outcomes)
        self.assertLessEqual(len(failed), 2 * threads, failed)
        self.assertLessEqual({(o.code, o.reason) for o in failed}, {(UNAVAILABLE, "connection_lost")}, failed)
        after = [o for o in load.outcomes if o.begun > seen]
        self.assertEqual(self.failed(after), [])
        self.assertNotIn(victim.name, {o.backend for o in after})
        self.assertEqual({o.backend for o in after}, {self.backends[0].name, self.backends[2].name})

        back = load.done()
        victim.start()
        eventually(lambda: victim.name in {o.backend for o in load.outcomes[back:]}, "it gets calls again")
        self.assertEqual(self.failed([o for o in load.stop() if o.begun > seen]), [])

    def test_when_all_are_dead_calls_fail_at_once_and_recover(self):
        self.start_backends(1)
        self.start_daemon()
        client = self.client()
        self.assertEqual(client.call().code, OK)
        self.backends[0].kill()
        eventually(lambda: self.endpoint("echo-1").connections == 0, "the proxy sees it")
        for _ in range(20):
            outcome = client.call()
            self.assertEqual(outcome.code, UNAVAILABLE)
            self.assertIn(outcome.reason, ("connect_failed", "no_endpoint"))
        self.backends[0].start()
        eventually(lambda: client.call().code == OK, "calls succeed again")

    def test_a_hung_backend_without_keepalive_costs_calls_their_deadline(self):
        self.start_backends(3)
        self.start_daemon(cluster="ejection: {enabled: false}\n    keepalive: {interval: 0}")
        client = self.client()
        victim = self.backends[0]
        key = self.key_of(client, victim.name)
        others = [self.key_of(client, b.name) for b in self.backends[1:]]
        victim.freeze()
        held = [client.begin(key, timeout=1) for _ in range(HELD)]
        for _ in range(50):  # while those hang
            for other in others:
                self.assertEqual(client.call(other).code, OK)
        late = [client.finish(*call) for call in held]
        self.assertEqual({o.code for o in late}, {DEADLINE})
        eventually(lambda: self.endpoint(victim.name).in_flight == 0, "nothing is kept for calls that are over")
        victim.thaw()
        outcome = client.call(key)
        self.assertEqual((outcome.code, outcome.backend), (OK, victim.name))

    def test_a_hung_backend_is_found_by_keepalive_and_passed_over(self):
        self.start_backends(3)
        self.start_daemon(cluster="keepalive: {interval: 300ms, timeout: 300ms}\n    connect_timeout: 300ms\n"
                                  "    backoff_base: 20s\n    backoff_max: 20s")
        client = self.client()
        victim = self.backends[0]
        key = self.key_of(client, victim.name)
        victim.freeze()
        outcome = client.call(key)  # with a deadline far away
        self.assertEqual((outcome.code, outcome.reason), (UNAVAILABLE, "connection_lost"))
        # The kernel goes on accepting for it. A connection on which nothing was said carries no call. Another worker may still have
        # one from before.
        lost = 0
        while client.call(key).code != OK:
            lost += 1
            self.assertLessEqual(lost, 1)
        for _ in range(50):
            outcome = client.call(key)
            self.assertEqual(outcome.code, OK)
            self.assertNotEqual(outcome.backend, victim.name)
        self.assertGreaterEqual(self.metric("sluice_upstream_timeouts_total", victim.name), 1)

    def test_a_backend_that_hangs_before_the_first_call_costs_none(self):
        self.start_backends(3)
        victim = self.backends[0]
        victim.freeze()
        self.start_daemon(cluster="connect_timeout: 300ms\n    backoff_base: 20s\n    backoff_max: 20s")
        load = self.load(threads=4)
        eventually(lambda: self.endpoint(victim.name).connection == "backoff", "it is found out")
        self.progress(load, 300)
        self.assertEqual(self.failed(load.stop()), [])
        self.assertNotIn(victim.name, {o.backend for o in load.outcomes})
        self.assertGreaterEqual(self.metric("sluice_upstream_connect_failures_total", victim.name), 1)
        self.assertGreaterEqual(self.metric("sluice_retries_total", "connect_timeout"), 1)

    def test_a_full_listen_queue_is_a_connect_timeout_and_others_serve(self):
        self.start_backends(2)
        full = socket.socket()
        full.bind((self.host(), 0))
        full.listen(0)  # and never accepts
        stuffing = []

        def stuffed():
            client = socket.socket()
            client.settimeout(0.2)
            stuffing.append(client)
            try:
                client.connect(full.getsockname())
                return False
            except (TimeoutError, socket.timeout):
                return True
        eventually(stuffed, "its queue is full")
        self.start_daemon(cluster="connect_timeout: 300ms\n    backoff_base: 5s\n    backoff_max: 5s",
                          endpoints={"full": "%s:%d" % full.getsockname()})
        load = self.load()
        eventually(lambda: self.endpoint("full").connection == "backoff", "a connection to it timed out")
        self.progress(load)
        self.assertEqual(self.failed(load.stop()), [])  # they were certainly not processed, so they went elsewhere
        self.assertEqual({o.backend for o in load.outcomes}, {"echo-1", "echo-2"})
        self.assertGreaterEqual(self.metric("sluice_upstream_connect_failures_total", '"full"'), 1)
        self.assertGreaterEqual(self.metric("sluice_retries_total", "connect_timeout"), 1)
        for client in [full, *stuffing]:
            client.close()


if __name__ == "__main__":
    main()
