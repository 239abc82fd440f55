#!/usr/bin/python3
# upgrade_test.py BIN: a process of the daemon is replaced by a new one under calls and streams (docs/handover.md), and by one that is
# broken, which changes nothing.
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
from concurrent import futures

import grpc

BIN = os.path.abspath(sys.argv[1])
LONG_WAIT = 30
# A new process that says Hello and Ready, and so is told all: sockets, lists, and its part of the limits.
HEARS_ALL = r"""import socket; s = socket.socket(fileno=3); s.setblocking(True); s.send(b"\x0a\x02\x08\x01"); s.recvmsg(65536, 65536)
s.send(b"\x1a\x00"); s.recvmsg(65536, 65536)"""


def children_of(pid):
    out = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="utf-8") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
        except OSError:
            continue  # it has ended
        if parent == pid:
            out.append(int(name))
    return out


class Backend(grpc.GenericRpcHandler):
    """Echo answers; Hold waits for the end of the request, and knows how many calls are in it."""

    def __init__(self):
        self.lock = threading.Condition()
        self.calls, self.holding, self.most = 0, 0, 0

    def service(self, details):
        if details.method.endswith("/Hold"):
            return grpc.stream_stream_rpc_method_handler(self.hold)
        return grpc.unary_unary_rpc_method_handler(self.echo)

    def echo(self, request, context):
        with self.lock:
            self.calls += 1
        return request

    def hold(self, requests, context):
        with self.lock:
            self.holding += 1
            self.most = max(self.most, self.holding)
            self.lock.notify_all()
        try:
            for message in requests:
                yield message
        finally:
            with self.lock:
                self.holding -= 1
                self.lock.notify_all()

    def wait_holding(self, count):
        with self.lock:
            return self.lock.wait_for(lambda: self.holding == count, LONG_WAIT)


class Stream:
    """A stream that stays open until it is told to end; each beat is a message there and back."""

    def __init__(self, port, method="/t.S/Hold"):
        self.channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.use_local_subchannel_pool", 1)])
        self.lock = threading.Condition()
        self.queue = [b"0"]
        self.call = self.channel.stream_stream(method)(self.messages())

    def messages(self):
        while True:
            with self.lock:
                self.lock.wait_for(lambda: self.queue)
                message = self.queue.pop(0)
            if message is None:
                return
            yield message

    def send(self, message):
        with self.lock:
            self.queue.append(message)
            self.lock.notify_all()

    def beat(self):
        self.send(b"beat")
        return next(self.call)

    def end(self):
        self.send(None)
        for _ in self.call:
            pass
        code = self.call.code()
        self.channel.close()
        return code


class Caller(threading.Thread):
    """Calls one after the other over one channel of a default client, until it is told to stop."""

    def __init__(self, port):
        super().__init__()
        self.port, self.stop, self.done, self.failures = port, threading.Event(), 0, []

    def run(self):
        with grpc.insecure_channel(f"127.0.0.1:{self.port}", options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
            call = channel.unary_unary("/t.S/Echo")
            while not self.stop.is_set():
                try:
                    call(b"x", timeout=LONG_WAIT)
                    self.done += 1
                except grpc.RpcError as error:
                    self.failures.append(f"{error.code()} {error.details()}")

    def finish(self):
        self.stop.set()
        self.join(LONG_WAIT)
        return self.failures


class UpgradeTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="sluice-upgrade-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.backend = Backend()
        self.server = grpc.server(futures.ThreadPoolExecutor(64), handlers=(self.backend,))
        self.backend_port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()
        self.addCleanup(self.server.stop, None)
        self.program = f"{self.folder}/sluiced"
        os.symlink(f"{BIN}/sluiced", self.program)
        self.pids = []

    def write(self, listener="127.0.0.1:0", cluster="", route="", more=""):
        with open(f"{self.folder}/sluice.yaml", "w", encoding="utf-8") as file:
            file.write(f"""
listeners: [{{address: "{listener}"}}]
clusters: [{{name: service, endpoints: [{{name: a, address: "127.0.0.1:{self.backend_port}"}}, {{name: b, address: "127.0.0.1:{self.backend_port}"}}]{cluster}}}]
routes: [{{name: all, cluster: service{route}}}]
admin: {{grpc: "unix:{self.folder}/admin.sock", http: "127.0.0.1:0"}}
drain_timeout: 5s
{more}
""")

    def start(self, environment=None):
        self.log = open(f"{self.folder}/log", "w+", encoding="utf-8")
        self.addCleanup(self.log.close)
        self.daemon = subprocess.Popen([self.program, "-c", f"{self.folder}/sluice.yaml"], stdout=self.log, stderr=self.log,
                                       env=dict(os.environ, **(environment or {})))
        self.addCleanup(self.daemon.wait)
        self.addCleanup(self.end_all)
        for _ in iter(lambda: "is ready" in self.read_log() or self.daemon.poll() is not None, True):
            select.select([], [], [], 0.01)
        self.ctl("wait-ready")
        port = re.search(r"listening on 127\.0\.0\.1:(\d+)", self.read_log())
        self.port = int(port.group(1)) if port else None

    def read_log(self):
        with open(f"{self.folder}/log", encoding="utf-8") as file:
            return file.read()

    def end_all(self):
        """All processes of the daemon that this test has started, by the pids that their log has."""
        pids = {self.daemon.pid} | {int(pid) for pid in re.findall(r"process (\d+) \(version", self.read_log())}
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def ctl(self, *words, code=0):
        done = subprocess.run([f"{BIN}/sluicectl", "--address", f"unix:{self.folder}/admin.sock", *words], text=True,
                              capture_output=True, timeout=90, check=False)
        self.assertEqual(done.returncode, code, f"{words}: {done.stdout}{done.stderr}\n{self.read_log()}")
        return done.stdout if code == 0 else done.stderr

    def processes(self):
        return json.loads(self.ctl("--json", "processes")).get("processes", [])

    def upgrade(self):
        return int(json.loads(self.ctl("--json", "upgrade"))["pid"])

    def metric(self, name):
        text = self.ctl("metrics")
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name))

    def wait_ended(self, pidfd):
        self.assertTrue(select.select([pidfd], [], [], LONG_WAIT)[0], f"it runs on\n{self.read_log()}")

    def until(self, what, condition):
        """Asks the daemon again until `condition` holds; each question takes a while by itself."""
        for _ in range(2000):
            if condition():
                return
        self.fail(f"never: {what}\n{self.read_log()}")

    def call(self, message=b"x", method="/t.S/Echo", **more):
        with grpc.insecure_channel(f"127.0.0.1:{self.port}", options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
            return channel.unary_unary(method)(message, timeout=LONG_WAIT, **more)

    # --- What goes on ---

    def test_no_call_fails_and_no_stream_breaks(self):
        self.write()
        self.start()
        streams = [Stream(self.port) for _ in range(4)]
        for stream in streams:
            self.assertEqual(next(stream.call), b"0")
        callers = [Caller(self.port) for _ in range(3)]
        for caller in callers:
            caller.start()
        pids = [self.daemon.pid]
        for generation in range(2, 7):
            pids.append(self.upgrade())
            newest = self.processes()[0]
            self.assertEqual((int(newest["pid"]), newest["generation"], newest["serving"]), (pids[-1], generation, True))
            self.assertEqual(self.call(), b"x")
            for stream in streams:
                self.assertEqual(stream.beat(), b"beat")
        self.assertEqual(len(set(pids)), 6)
        self.assertEqual([failure for caller in callers for failure in caller.finish()], [])
        self.assertTrue(all(caller.done > 0 for caller in callers))
        self.until("one old process is left, that of the streams",
                   lambda: [int(p["pid"]) for p in self.processes()] == [pids[-1], pids[0]])
        for stream in streams:
            self.assertEqual(stream.beat(), b"beat")
            self.assertEqual(stream.end(), grpc.StatusCode.OK)
        self.until("all old processes have ended", lambda: len(self.processes()) == 1)
        self.assertEqual(self.daemon.wait(LONG_WAIT), 0)

    def test_no_connection_is_refused(self):
        self.write()
        self.start()
        stop, refused, made = threading.Event(), [], []

        def connect():
            while not stop.is_set():
                try:
                    socket.create_connection(("127.0.0.1", self.port), LONG_WAIT).close()
                    made.append(1)
                except OSError as error:
                    refused.append(str(error))
        thread = threading.Thread(target=connect)
        thread.start()
        for _ in range(5):
            self.upgrade()
        stop.set()
        thread.join(LONG_WAIT)
        self.assertEqual(refused, [])
        self.assertGreater(len(made), 0)

    def test_lists_limits_and_health_stay(self):
        self.write(cluster=", rate_limit: {rate: 1000}")
        self.start()
        self.ctl("add", "service", f"c=127.0.0.1:{self.backend_port}")
        self.ctl("endpoint", "eject", "service", "a")
        self.ctl("limit", "set", "cluster/service/rate", "--rate", "77")
        before = json.loads(self.ctl("--json", "clusters"))["clusters"][0]
        self.upgrade()
        after = json.loads(self.ctl("--json", "clusters"))["clusters"][0]
        for field in ("version", "digest", "source"):
            self.assertEqual(after.get(field), before.get(field), field)
        self.assertIn("77", self.ctl("limits"))
        self.assertRegex(self.ctl("endpoints", "service", "--why"), r"a\s+.*ejected")
        self.ctl("endpoint", "restore", "service", "a")
        # A change meets the version that it was made for.
        self.ctl("remove", "service", "c", "--if-version", after["version"])

    def test_counters_never_go_back_and_count_the_old_process_too(self):
        self.write()
        self.start()
        for _ in range(5):
            self.call()
        stream = Stream(self.port)
        self.assertEqual(next(stream.call), b"0")
        name = 'sluice_calls_total{cluster="service",grpc_status="OK",route="all"}'
        duration = 'sluice_call_duration_seconds_count{route="all"}'
        self.assertEqual((self.metric(name), self.metric(duration)), (5, 5))
        for _ in range(3):
            self.upgrade()
            self.assertEqual((self.metric(name), self.metric(duration)), (5, 5))
        self.call()
        self.assertEqual(self.metric(name), 6)
        self.assertEqual(stream.end(), grpc.StatusCode.OK)
        self.until("the stream of the first process is counted", lambda: self.metric(name) == 7)
        self.assertEqual(self.metric(duration), 7)

    def test_stored_responses_are_still_there(self):
        self.write(route=", cache: {ttl: 60s, methods: [t.S/Echo]}")
        self.start()
        self.assertEqual(self.call(b"key" * 1000), b"key" * 1000)
        self.assertEqual(self.call(b"key" * 1000), b"key" * 1000)
        self.assertEqual(self.backend.calls, 1)
        for _ in range(2):
            self.upgrade()
            self.assertEqual(self.call(b"key" * 1000), b"key" * 1000)
        self.assertEqual(self.backend.calls, 1)
        self.ctl("cache", "purge")
        self.call(b"key" * 1000)
        self.assertEqual(self.backend.calls, 2)

    def test_permits_of_all_processes_count_together(self):
        self.write(cluster=", concurrency: {max: 3, queue_time: 0}")
        self.start()
        first = Stream(self.port)
        self.assertTrue(self.backend.wait_holding(1))
        self.upgrade()
        second = Stream(self.port)
        self.assertTrue(self.backend.wait_holding(2))
        self.upgrade()
        third = Stream(self.port)
        self.assertTrue(self.backend.wait_holding(3))
        waiting = Stream(self.port)
        self.until("the fourth waits", lambda: re.search(r"cluster/service/concurrency .*\b1\b", self.ctl("limits")) and
                   any(limit.get("waiting") == "1" for limit in json.loads(self.ctl("--json", "limits"))["limits"]))
        self.assertEqual(self.backend.most, 3)
        self.assertEqual(first.end(), grpc.StatusCode.OK)  # of the oldest process
        self.assertEqual(next(waiting.call), b"0")
        self.assertEqual(self.backend.most, 3)
        # What a process that is killed had comes back too; the backend hears of its end at the same time.
        pid = int(self.processes()[1]["pid"])
        last = Stream(self.port)
        os.kill(pid, signal.SIGKILL)
        self.assertEqual(next(last.call), b"0")
        self.assertEqual([stream.end() for stream in (third, waiting, last)], [grpc.StatusCode.OK] * 3)
        second.channel.close()

    def test_a_rate_is_one_for_all_processes(self):
        self.write(cluster=", rate_limit: {rate: 0.001, burst: 16, queue: 0}")
        self.start()
        passed = 0
        for _ in range(5):
            for _ in range(4):
                try:
                    self.call()
                    passed += 1
                except grpc.RpcError as error:
                    self.assertEqual(error.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
            self.upgrade()
        self.assertLessEqual(passed, 16)
        self.assertGreaterEqual(passed, 8)

    def test_a_signal_does_it_too_and_a_changed_file_is_read(self):
        self.write()
        self.start()
        self.write(more="connections_max: 1234")
        self.daemon.send_signal(signal.SIGUSR2)
        self.until("another process serves", lambda: int(self.processes()[0]["pid"]) != self.daemon.pid)
        self.assertIn("connections_max: 1234", self.ctl("config", "dump"))
        self.assertEqual(self.daemon.wait(LONG_WAIT), 0)

    def test_or_reload_only_reloads_where_the_file_is_the_same(self):
        self.write()
        self.start()
        self.assertIn("reloaded", self.ctl("upgrade", "--or-reload"))
        self.assertEqual(int(self.processes()[0]["pid"]), self.daemon.pid)
        os.remove(self.program)
        shutil.copy(f"{BIN}/sluiced", self.program)
        self.assertIn("serves", self.ctl("upgrade", "--or-reload"))
        self.assertNotEqual(int(self.processes()[0]["pid"]), self.daemon.pid)

    def test_a_drain_ends_all_processes(self):
        self.write()
        self.start()
        stream = Stream(self.port)
        self.assertEqual(next(stream.call), b"0")
        pid = self.upgrade()
        newest = os.pidfd_open(pid)
        self.addCleanup(os.close, newest)
        self.ctl("drain", "--timeout", "300ms")
        with self.assertRaises(grpc.RpcError) as raised:
            list(stream.call)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.UNAVAILABLE)
        self.assertEqual(self.daemon.wait(LONG_WAIT), 0)
        stream.channel.close()
        self.wait_ended(newest)

    def test_unix_sockets_stay(self):
        self.write(listener=f"unix:{self.folder}/listen.sock")
        self.start()
        for _ in range(2):
            self.upgrade()
            self.until("one process is left", lambda: len(self.processes()) == 1)
            with grpc.insecure_channel(f"unix:{self.folder}/listen.sock",
                                       options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
                self.assertEqual(channel.unary_unary("/t.S/Echo")(b"u", timeout=LONG_WAIT), b"u")
        newest = os.pidfd_open(int(self.processes()[0]["pid"]))
        self.addCleanup(os.close, newest)
        self.ctl("stop")
        self.wait_ended(newest)
        self.assertFalse(os.path.exists(f"{self.folder}/listen.sock"))
        self.assertFalse(os.path.exists(f"{self.folder}/admin.sock"))

    def test_a_service_manager_hears_of_the_new_process(self):
        self.write()
        manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(manager.close)
        manager.bind(f"{self.folder}/notify")
        manager.settimeout(LONG_WAIT)
        self.start({"NOTIFY_SOCKET": f"{self.folder}/notify"})
        pid = self.upgrade()
        said, ready = "", 0
        while f"MAINPID={pid}" not in said or said.count("READY=1") < 2:
            said += manager.recv(4096).decode() + "\n"
        self.assertNotIn("STOPPING", said)
        self.assertNotIn("FDSTOREREMOVE", said)

    def test_eight_old_processes_are_enough(self):
        self.write()
        self.start()
        streams = []
        for _ in range(8):
            streams.append(Stream(self.port))
            self.assertEqual(next(streams[-1].call), b"0")
            self.upgrade()
        self.assertEqual(len(self.processes()), 9)
        streams.append(Stream(self.port))
        self.assertEqual(next(streams[-1].call), b"0")
        self.assertIn("8 older processes", self.ctl("upgrade", code=1))
        self.assertEqual(streams[0].end(), grpc.StatusCode.OK)
        self.until("the oldest has ended", lambda: len(self.processes()) == 8)
        self.upgrade()
        for stream in streams[1:]:
            self.assertEqual(stream.beat(), b"beat")
            self.assertEqual(stream.end(), grpc.StatusCode.OK)

    # --- A new process that is broken ---

    def check_unharmed(self, stream):
        self.assertEqual([int(p["pid"]) for p in self.processes()], [self.daemon.pid])
        self.assertEqual(self.call(), b"x")
        self.assertEqual(stream.beat(), b"beat")
        self.ctl("reweight", "service", "a@3")  # changes are allowed again

    def replace_program(self, text, mode=0o755):
        os.remove(self.program)
        with open(self.program, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.program, mode)

    # Twice: before it says a word, and with everything in its hands. Half a minute each, in which calls go on.
    def test_what_hangs_is_given_up(self):
        self.write(cluster=", concurrency: {max: 4, queue_time: 0}, rate_limit: {rate: 1000, burst: 100}")
        self.start()
        stream = Stream(self.port)
        self.assertEqual(next(stream.call), b"0")
        caller = Caller(self.port)
        caller.start()
        hangs = HEARS_ALL + "\nimport time; time.sleep(300)"
        for script in ["sleep 300", f"/usr/bin/python3 -c '{hangs}'"]:
            with self.subTest(script):
                self.replace_program(f"#!/bin/bash\nexec {script}\n")
                self.assertIn("the new process was not ready in 30 s", self.ctl("upgrade", code=1))
                self.check_unharmed(stream)
                self.assertEqual(children_of(self.daemon.pid), [])
        self.assertEqual(caller.finish(), [])
        os.remove(self.program)
        os.symlink(f"{BIN}/sluiced", self.program)
        self.upgrade()
        self.assertEqual(self.call(), b"x")
        self.assertEqual(stream.beat(), b"beat")
        self.assertEqual(stream.end(), grpc.StatusCode.OK)

    def test_what_is_broken_changes_nothing(self):
        self.write(cluster=", concurrency: {max: 4, queue_time: 0}, rate_limit: {rate: 1000, burst: 100}")
        self.start()
        stream = Stream(self.port)
        self.assertEqual(next(stream.call), b"0")
        caller = Caller(self.port)
        caller.start()
        scripts = {
            "no program": None,
            "it ends at once": "exit 3",
            "it ends by a signal": "kill -9 $$",
            "it says what is no message": "printf 'what is this' >&3",
            "it says nothing and closes": "exec 3>&-; exit 0",
            "it says something else first": r"printf '\032\000' >&3; exec sleep 20",  # Ready
            "it has another format": r"printf '\012\002\010\007' >&3; exec sleep 20",  # Hello {format: 7}
            "it never goes on": f"exec {BIN}/sluiced --check -c /dev/null",
            "it dies once it is told all": "exec /usr/bin/python3 -c '" + HEARS_ALL + "'",
        }
        for name, script in scripts.items():
            with self.subTest(name):
                if script is not None:
                    self.replace_program(f"#!/bin/bash\n{script}\n")
                else:
                    self.replace_program("not a program", mode=0o644)
                self.ctl("upgrade", code=1)
                self.check_unharmed(stream)
        os.remove(self.program)
        os.symlink(f"{BIN}/sluiced", self.program)
        bad = {"a file that cannot be read": "clusters: [", "an unknown key": "colour: blue",
               "a certificate that is not there": "listeners: [{address: 127.0.0.1:0, tls: {cert: /no/where, key: /no/where}}]"}
        for name, text in bad.items():
            with self.subTest(name):
                with open(f"{self.folder}/sluice.yaml", "a+", encoding="utf-8") as file:
                    file.seek(0)
                    good = file.read()
                    file.write(text)
                self.assertIn("sluice.yaml:", self.ctl("upgrade", code=1))
                self.check_unharmed(stream)
                with open(f"{self.folder}/sluice.yaml", "w", encoding="utf-8") as file:
                    file.write(good)
        with self.subTest("an address that is taken"):
            taken = socket.create_server(("127.0.0.1", 0))
            self.addCleanup(taken.close)
            self.write(cluster=", concurrency: {max: 4, queue_time: 0}, rate_limit: {rate: 1000, burst: 100}",
                       listener=f"127.0.0.1:{taken.getsockname()[1]}")
            self.assertIn("cannot listen", self.ctl("upgrade", code=1))
            self.check_unharmed(stream)
        self.write(cluster=", concurrency: {max: 4, queue_time: 0}, rate_limit: {rate: 1000, burst: 100}")
        self.assertEqual(caller.finish(), [])
        # And a good one takes over after all that.
        self.upgrade()
        self.assertEqual(self.call(), b"x")
        self.assertEqual(stream.beat(), b"beat")
        self.assertEqual(stream.end(), grpc.StatusCode.OK)
        # All of the limit is there: four at once.
        streams = [Stream(self.port) for _ in range(4)]
        for each in streams:
            self.assertEqual(next(each.call), b"0")
            self.assertEqual(each.end(), grpc.StatusCode.OK)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
