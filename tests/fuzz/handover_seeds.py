# Seeds of the target `handover`, for make_seeds.py.
import struct


def handover():
    # Fields by the numbers of proto/sluice/handover/v1/handover.proto.
    def varint(value):
        out = b""
        while value >= 0x80:
            out += bytes([value & 0x7F | 0x80])
            value >>= 7
        return out + bytes([value])

    def number(tag, value):
        return varint(tag << 3) + varint(value)

    def text(tag, value):
        return varint(tag << 3 | 2) + varint(len(value)) + value

    def double(tag, value):
        return varint(tag << 3 | 1) + struct.pack("<d", value)

    def records(*all_records):
        return b"".join(varint(len(record)) + record for record in all_records)

    def messages(*all_messages):
        return b"".join(struct.pack(">H", len(message)) + message for message in all_messages)

    endpoint = text(1, b"x") + text(2, b"10.0.0.9:1") + double(3, 2) + number(4, 1) + text(5, b"here") + number(8, 1000)
    rpc = text(1, b"c") + number(2, 1700000000000000) + number(3, 7) + number(4, 1) + text(7, endpoint)
    rate = double(1, 10) + number(2, 80) + number(4, 1024)
    yield "lists", b"\0" + records(text(1, rpc), text(1, text(1, b"gone") + number(4, 2) + text(7, endpoint)))
    yield "limits", b"\0" + records(
        text(2, text(1, b"cluster/c/rate") + text(2, rate) + text(3, double(1, 77) + number(2, 5))),
        text(2, text(1, b"cluster/c/concurrency") + text(4, number(1, 8)) + text(5, number(1, 3))),
        text(2, text(1, b"route/r/client_rate") + text(2, double(1, 1) + number(2, 8)) + text(3, double(1, 2))))
    yield "lists-other-format", b"\1SLUICEHO\2\0\0\0"
    health = text(1, b"c") + text(2, b"a") + text(3, b"ejected") + text(4, b"manual") + number(5, 1) + double(14, 0.5)
    warming = text(1, b"c") + text(2, b"b") + text(3, b"warming") + text(4, b"none") + double(14, 1e300) + double(15, -1)
    yield "health", b"\2" + records(text(5, health), text(5, warming))
    yield "levels", b"\2" + records(
        text(2, text(1, b"cluster/c/rate") + number(6, 30 << 20)),
        text(2, text(1, b"route/r/rate") + number(6, 1 << 63) + number(7, 1 << 62)),
        text(3, text(1, b"route/r/client_rate") + varint(2 << 3 | 1) + b"\1" * 8 + number(3, 8 << 20)),
        text(4, text(1, b"route/r/client_rate") + number(2, 4096) + number(3, 4095) + number(4, 1 << 60)))
    calls = text(1, b"sluice_calls_total") + text(2, b'cluster="c",grpc_status="",route="r"') + text(3, b"OK") + number(4, 5)
    duration = text(1, b"sluice_call_duration_seconds") + text(2, b'route="r"') + number(5, 9) + text(6, b"\1" * 122)
    line = text(1, b"sluice_calls_total") + text(2, b"sluice_calls_total{x}") + double(7, 3) + number(8, 1)
    yield "counts", b"\2" + records(text(6, calls), text(6, duration), text(6, line))
    key = struct.pack("<II", 4, 5) + b"/s/M" + b"\0" * 5
    status = text(2, text(1, b":status") + text(2, b"200")) + text(2, text(1, b"content-type") + text(2, b"application/grpc"))
    ok = text(4, text(1, b"grpc-status") + text(2, b"0") + number(3, 2))
    times = b"".join(number(tag, 1 << 60) for tag in (7, 8, 9, 10))
    yield "response", b"\2" + records(text(7, text(1, key) + status + text(3, b"\0\0\0\0\2ab") + ok + times + number(11, 1)))
    begin = text(2, number(1, 1) + text(2, b"1.0") + number(3, 7) + number(4, 1))
    process = number(1, 7) + number(3, 1) + number(4, 5) + number(7, 2)
    yield "take-over", b"\x24" + messages(begin, text(4, text(1, process)))
    yield "take-over-failed", b"\x14" + messages(begin, text(6, text(1, b"too late")))
    given = text(7, text(1, text(1, b"cluster/c/concurrency") + number(2, 2)) + text(2, text(1, b"cluster/c/rate") + number(2, 0)))
    yield "leaving", b"\6" + messages(given, text(9, number(1, 3) + number(2, 1) + text(3, text(1, b"cluster/c/concurrency") + number(2, 9))), given, given)
    yield "leaving-counts", b"\x16" + messages(text(8, b""), given)
