# One row for one peer: backends, the peer and the client are started, a backend is made sick for half of the time, and what clients
# saw is counted by phase.
import collections
import contextlib
import os
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass, field

import peers
from processes import SERVER_NAME, Backend, Namespace, Process, line_of, make_certificates
from rig.wait import LONG_WAIT, eventually

BAD = "b1"          # the sick backend's name
WARM = 1            # seconds of calls before second 0
BEGIN, END = 3 / 16, 11 / 16  # of the measured seconds: when the fault begins and when it ends
STATUS = ("OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED RESOURCE_EXHAUSTED "
          "FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS UNAUTHENTICATED").split()


class Skipped(Exception):
    pass


@dataclass
class Call:
    repeatable: bool
    begun: float      # seconds from second 0, as scheduled
    ended: float
    status: str
    reason: str       # sluice-reason, "-" without
    processed: str    # sluice-processed, "-" without
    backend: str      # the backend that said so in trailers, "-" without
    executed: list = field(default_factory=list)  # names of backends, one an execution


# What clients saw of the calls of one phase.
@dataclass
class Phase:
    calls: int = 0
    failed: dict = field(default_factory=dict)    # "Get UNAVAILABLE reason processed" -> calls
    p50: float = 0                                # ms, of Get, also of those that failed
    p99: float = 0
    executed: dict = field(default_factory=dict)  # backend -> executions
    repeated: int = 0                             # executions above the first, of all calls


@dataclass
class Row:
    peer: str
    fault: str
    phases: dict = field(default_factory=dict)  # before, fault, second (half of the fault), after
    failed: dict = field(default_factory=dict)  # Get, Put -> failed calls in all phases
    twice: dict = field(default_factory=dict)   # Get, Put -> calls executed more than once
    unlabelled: int = 0                         # failures with sluice-reason, which are Sluice's own, without sluice-processed
    put_failed_late: int = 0                    # Put calls that failed and were begun in the second half or after
    share: float = 0                            # of all executions of the second half: the sick backend's
    back: float | None = None                   # seconds from the fault's end to the begin of the first call it answered
    watched: float = 0                          # seconds from the fault's end to that of the calls
    busy: float = 0                             # of a core, before the row, by whatever else runs on the machine
    note: str = ""


class Bed:
    # `layers`: of proxies, one before the other.
    def __init__(self, peer, fault, options, layers=1):
        self.peer, self.fault, self.options, self.layers = peer, fault, options, layers
        self.folder = options.scratch
        self.namespace = self.client = None
        self.proxies = []  # the one that the client calls is the last
        self.backends = []

    # An address of 127/8 for one process of this run.
    def host(self, number):
        return f"127.{10 + os.getpid() % 200}.{os.getpid() // 200 % 250}.{number}"

    def __enter__(self):
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _start(self):
        options, fault = self.options, self.fault
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)
        ca = None
        if fault.tls:
            if shutil.which("openssl") is None:
                raise Skipped("no openssl to make certificates")
            make_certificates(self.folder)
            ca = f"{self.folder}/ca.pem"
        if fault.namespace:
            try:
                self.namespace = Namespace()
            except (OSError, RuntimeError, AssertionError) as error:
                raise Skipped(f"no network namespace for a backend: {error}") from None
        subprocess.run(["protoc", "-I", os.path.dirname(__file__), "--descriptor_set_out", f"{self.folder}/matrix.descriptors",
                        "--include_imports", "matrix.proto"], check=True)
        secure = ["--certificate", "good.pem", "--key", "key.pem"] if fault.tls else []
        for i in range(1, options.backends + 1):
            bad = i == 1  # BAD
            host = Namespace.ITS if bad and self.namespace else self.host(i + 1)
            backend = Backend(options.programs, f"b{i}", host, self.folder, options.service_ms, options.seed + i,
                              [*secure, *fault.everywhere, *(fault.flags if bad else ())], self.namespace.wrapper if bad and self.namespace else ())
            self.backends.append(backend)
            backend.start()
        self.bad = self.backends[0]
        addresses = [backend.address for backend in self.backends]
        self.client_flags = []
        if self.peer.program:
            self.target = self._start_proxy(self.host(1), addresses, ca)
            for layer in range(1, self.layers):
                self.target = self._start_proxy(self.host(255 - layer), [self.target], None)
        else:
            self.target = "ipv4:" + ",".join(addresses)
            config = peers.configure(self.peer, self.folder, self.folder, self.host(1), addresses, ca, fault.health)
            self.client_flags = ["--service-config", str(config), "--connections", "1"]
            if ca:
                self.client_flags += ["--ca", ca, "--server-name", SERVER_NAME]

    # Its address.
    def _start_proxy(self, host, addresses, ca):
        own = f"{self.folder}/{host}"
        os.makedirs(own)
        config = peers.configure(self.peer, self.folder, own, host, addresses, ca, self.fault.health)
        proxy = Process(self.peer.command(peers.program_of(self.peer, self.options.build), str(config)), f"{own}/{self.peer.name}.out")
        self.proxies.append(proxy)
        proxy.start()

        def connects():
            self._look_after_proxies()
            with contextlib.suppress(OSError):
                socket.create_connection((host, peers.PORT), 0.2).close()
                return True
            time.sleep(0.02)
            return False
        eventually(connects, f"{self.peer.name} listens")
        return f"{host}:{peers.PORT}"

    def _look_after_proxies(self):
        for proxy in self.proxies:
            if not proxy.running():
                raise RuntimeError(f"{self.peer.name} ended: {proxy.text()[-1000:]}")

    # Makes the calls, with the fault in their midst. Returns when it was made to begin and when its end was done, in seconds from
    # second 0.
    def run(self):
        options = self.options
        command = [f"{options.programs}/matrix_client", "--target", self.target, "--out", f"{self.folder}/calls", "--rate", options.rate,
                   "--warm", WARM, "--seconds", options.seconds, "--seed", options.seed, "--arrivals", options.arrivals,
                   "--repeatable", options.repeatable, "--deadline-ms", options.deadline_ms, *self.client_flags]
        environment = {**os.environ, "GRPC_EXPERIMENTAL_ENABLE_OUTLIER_DETECTION": "true"}
        with open(f"{self.folder}/client.out", "wb") as log:
            self.client = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=log, text=True, env=environment)
        zero = float(line_of(self.client, "the client").removeprefix("begin "))
        self._until(zero + options.seconds * BEGIN)
        begun = time.monotonic() - zero
        self.fault.begin(self)
        self._until(zero + options.seconds * END)
        self.fault.end(self)
        ended = time.monotonic() - zero
        if self.client.wait(options.seconds + LONG_WAIT) != 0:
            with open(f"{self.folder}/client.out", encoding="utf-8") as log:
                raise RuntimeError(f"the client ended with {self.client.returncode}: {log.read()[-500:]}")
        self._look_after_proxies()
        return begun, ended

    @staticmethod
    def _until(moment):
        time.sleep(max(0, moment - time.monotonic()))

    # By number; also those of the warm-up, whose `begun` is negative.
    def calls(self):
        calls = {}
        with open(f"{self.folder}/calls", encoding="utf-8") as file:
            for line in file:
                number, method, begun, took, status, reason, processed, backend = line.rstrip("\n").split("\t")
                calls[int(number)] = Call(method == "Get", int(begun) / 1e6, (int(begun) + int(took)) / 1e6, STATUS[int(status)], reason,
                                          processed, backend)
        for backend in self.backends:
            for number in backend.executions():
                calls[number].executed.append(backend.name)
        return calls

    def __exit__(self, *_):
        if self.client:
            if self.client.poll() is None:
                self.client.kill()
                self.client.wait()
            self.client.stdout.close()
        for process in [*self.proxies, *self.backends]:
            if process.running():
                process.kill()
        if self.namespace:
            self.namespace.close()
        if not self.options.keep:
            shutil.rmtree(self.folder, ignore_errors=True)


def percentile(sorted_values, share):
    return sorted_values[min(len(sorted_values) - 1, int(len(sorted_values) * share))] if sorted_values else 0.0


def method(call):
    return "Get" if call.repeatable else "Put"


def phase_of(calls):
    took = sorted((call.ended - call.begun) * 1000 for call in calls if call.repeatable)
    failed = collections.Counter(f"{method(c)} {c.status} {c.reason} {c.processed}" for c in calls if c.status != "OK")
    executed = collections.Counter(name for call in calls for name in call.executed)
    return Phase(len(calls), dict(failed), round(percentile(took, 0.5), 2), round(percentile(took, 0.99), 2), dict(executed),
                 sum(max(0, len(call.executed) - 1) for call in calls))


# A call that is under way when the fault begins belongs to the fault.
def count(row, calls, begun, ended):
    middle = (begun + ended) / 2
    measured = [call for call in calls if call.begun >= 0]
    row.phases = {
        "before": phase_of([c for c in measured if c.ended < begun]),
        "fault": phase_of([c for c in measured if c.ended >= begun and c.begun < ended]),
        "second": phase_of([c for c in measured if middle <= c.begun < ended]),
        "after": phase_of([c for c in measured if c.begun >= ended])}
    failed = [call for call in measured if call.status != "OK"]
    for name in ("Get", "Put"):
        row.failed[name] = sum(1 for call in failed if method(call) == name)
        row.twice[name] = sum(1 for call in calls if method(call) == name and len(call.executed) > 1)
    row.unlabelled = sum(1 for call in failed if call.reason != "-" and call.processed == "-")
    row.put_failed_late = sum(1 for call in failed if not call.repeatable and call.begun >= middle)
    second = row.phases["second"].executed
    row.share = second.get(BAD, 0) / max(1, sum(second.values()))
    # Stopped, cut off or late backends also answer calls of the time before.
    row.back = min((call.begun - ended for call in calls if call.begun >= ended and call.backend == BAD and call.status == "OK"),
                   default=None)


def measure(peer, fault, options):
    row = Row(peer.name, fault.name)
    try:
        with Bed(peer, fault, options) as bed:
            begun, ended = bed.run()
            count(row, list(bed.calls().values()), begun, ended)
            row.watched = options.seconds - ended
    except Skipped as reason:
        row.note = f"skipped: {reason}"
    return row
