# The faults: what each does to a backend, and what undoes it.
from dataclasses import dataclass
from typing import Callable

from processes import GRACE


@dataclass(frozen=True)
class Fault:
    name: str
    title: str
    # Both get the bed; the sick backend is bed.bad.
    begin: Callable
    end: Callable
    back_within: float = 3    # seconds from the end until it must have calls again
    flags: tuple = ()         # of the bad backend from the start
    everywhere: tuple = ()    # of all backends from the start
    tls: bool = False         # all backends speak TLS
    namespace: bool = False   # the bad backend lives in a network namespace
    health: str = "off"       # mode of Sluice's active health


# A state that the backend is told; "healthy" ends it.
def mood(name, title, line, **more):
    return Fault(name, title, lambda bed: bed.bad.tell(line), lambda bed: bed.bad.tell("healthy"), **more)


# The backend ends in good order, and one that is sick below gRPC takes its place.
def replaced(name, title, *flags, **more):
    def end(bed):
        bed.bad.kill()
        bed.bad.start()
    return Fault(name, title, lambda bed: bed.bad.replace(*flags), end, flags=("--grace-ms", str(int(GRACE * 1000))), **more)


# SIGTERM; the process is gone until the end of the fault.
def ended(name, title, grace_ms):
    def end(bed):
        bed.bad.wait()
        bed.bad.start()
    return Fault(name, title, lambda bed: bed.bad.terminate(), end, back_within=1, flags=("--grace-ms", str(grace_ms)))


EXPIRED = ["--certificate", "expired.pem", "--key", "key.pem"]
ALL = [
    Fault("kill", "kill -9, and started again", lambda bed: bed.bad.kill(), lambda bed: bed.bad.start(), back_within=1),
    ended("term", "SIGTERM without grace, and started again", 0),
    ended("term_grace", "SIGTERM with 2 s of grace, and started again", 2000),
    Fault("stop", "SIGSTOP: hangs", lambda bed: bed.bad.freeze(), lambda bed: bed.bad.thaw()),
    replaced("listen_full", "listen queue full", "--raw", "listen_full"),
    replaced("mute", "accepts connections, sends no byte", "--raw", "mute"),
    mood("silent", "accepts calls, never answers", "silent"),
    replaced("rst_stream", "RST_STREAM to each call", "--raw", "rst_stream"),
    replaced("tcp_reset", "connection reset at each call", "--raw", "tcp_reset"),
    replaced("goaway", "GOAWAY at each call", "--raw", "goaway"),
    mood("unavailable", "UNAVAILABLE, always", "unavailable 100"),
    mood("unavailable_30", "UNAVAILABLE, 30%", "unavailable 30"),
    mood("unavailable_5", "UNAVAILABLE, 5%", "unavailable 5"),
    mood("internal", "INTERNAL, always", "internal 100"),
    mood("cancel", "cancels every call", "cancel"),
    replaced("garbage", "garbage instead of HTTP/2", "--raw", "garbage"),
    replaced("certificate", "certificate expired", *EXPIRED, tls=True),
    Fault("half_open", "half-open: packets are dropped", lambda bed: bed.namespace.cut(), lambda bed: bed.namespace.join(),
          namespace=True),
    mood("late", "answers 300 ms late", "late 300"),
    mood("slow", "answers 3 x late", "slow 3"),
    mood("not_serving", "health service says NOT_SERVING", "not_serving", health="watch"),
]
FAULTS = {fault.name: fault for fault in ALL}
