# What is called: a scenario is a layout of processes on cores, a load tool, connections, calls under way, and message sizes.
#
# Layouts:
#   2core  the proxy alone on one core, which an idle-priority spinner keeps out of its halt state; client and backend poll on the
#          other, so that no send of the proxy has to wake a sleeping core (40 to 400 us in a virtual machine). The main figures.
#   1core  proxy, client and backend share one core and sleep as usual: no wake-up crosses cores. The most repeatable.
#   raw    the proxy on one core, client and backend on the other, all sleep as usual.
#   free   all processes may use both cores: does one client connection use two?
from pathlib import Path

HERE = Path(__file__).resolve().parent
CONF = HERE / "conf"
LISTEN_PORT, UP_PORTS, COLLECTOR_PORT = 18080, (19001, 19002, 19003), 19010
UNIQUE = dict(args=["--unique"])  # another x-request-id with each call
# What load_client sends, for h2load.
HEADERS = {"content-type": "application/grpc", "te": "trailers", "user-agent": "grpc-c++/1.51.1 grpc-c/29.0.0 (linux; chttp2)",
           "x-key": "tenant-0042", "x-trace-bin": "AAECAwQFBgcICQoLDA0ODw", "x-request-id": "0000000000000007"}


def scenario(layout, tool, connections, streams, calls, request=32, response=32, **more):
    return dict(layout=layout, tool=tool, c=connections, m=streams, n=calls, req=request, resp=response, **more)


SCENARIOS = {
    "c1 m1": scenario("2core", "load_client", 1, 1, 10000, **UNIQUE),
    "c1 m100": scenario("2core", "load_client", 1, 100, 80000, **UNIQUE),
    "c4 m32": scenario("2core", "load_client", 4, 32, 80000, **UNIQUE),
    "c32 m32": scenario("2core", "load_client", 32, 32, 80000, **UNIQUE),
    "10k/s open loop": scenario("2core", "load_client", 1, 100, 10000, args=["--unique", "--rate", "10000"], noscale=True),
    "20k/s open loop": scenario("2core", "load_client", 1, 100, 40000, args=["--unique", "--rate", "20000"], noscale=True),
    "4KiB c1 m100": scenario("2core", "load_client", 1, 100, 30000, 4096, 4096, **UNIQUE),
    "4KiB c4 m32": scenario("2core", "load_client", 4, 32, 30000, 4096, 4096, **UNIQUE),
    "bulk 8MiB c1 m1": scenario("2core", "load_client", 1, 1, 100, 32, 8 << 20, bulk=True),
    "bulk 8MiB c4 m2": scenario("2core", "load_client", 4, 2, 100, 32, 8 << 20, bulk=True),
    "1core h2load c1 m1": scenario("1core", "h2load", 1, 1, 10000),
    "1core h2load c1 m100": scenario("1core", "h2load", 1, 100, 60000),
    "1core h2load c4 m32": scenario("1core", "h2load", 4, 32, 60000),
    "1core h2load c32 m32": scenario("1core", "h2load", 32, 32, 60000),
    "1core h2load 4KiB c4 m32": scenario("1core", "h2load", 4, 32, 25000, 4096, 4096),
    "1core c1 m1": scenario("1core", "load_client", 1, 1, 10000, **UNIQUE),
    "raw h2load c4 m32": scenario("raw", "h2load", 4, 32, 60000),
    "free 1 worker c1 m100": scenario("free", "load_client", 1, 100, 60000, workers=1, **UNIQUE),
    "free 2 workers c1 m100": scenario("free", "load_client", 1, 100, 60000, workers=2, **UNIQUE),
    "free 2 workers c4 m32": scenario("free", "load_client", 4, 32, 60000, workers=2, **UNIQUE),
}
# The neighbours' CPU is measured where they sleep: where they poll, it is the time that passes.
SCENARIOS |= {f"1core {name}": SCENARIOS[name] | dict(layout="1core")
              for name in ("c1 m100", "c4 m32", "c32 m32", "4KiB c1 m100", "4KiB c4 m32", "bulk 8MiB c1 m1", "bulk 8MiB c4 m2")}


def grpc_message(size):
    """A gRPC message of `size` bytes behind its prefix: one protobuf field. As in src/h2_wire.h."""
    length, varint = size - 1, b""
    for bytes_of_varint in range(1, 6):
        rest, varint = size - 1 - bytes_of_varint, b""
        length = rest
        while rest >= 128:
            varint, rest = varint + bytes([(rest & 127) | 128]), rest >> 7
        varint += bytes([rest])
        if len(varint) == bytes_of_varint:
            break
    body = b"\x0a" + varint + bytes(ord("a") + (i * 7 + i // 251) % 26 for i in range(length))
    return b"\0" + size.to_bytes(4, "big") + body.ljust(size, b"z")


def calls_for(peer, wanted):
    """How many calls a burst has: fewer through a slow peer, so that all take about as long."""
    if wanted.get("noscale") or wanted.get("bulk"):
        return wanted["n"]
    scale = peer.get("scale", 1)
    return int(wanted["n"] * (min(1, scale) ** 0.5 if wanted["n"] <= 20000 else scale))
