#!/usr/bin/env python3
# make_seeds.py DIR: writes the hand-made part of the corpora, DIR/TARGET/CASE. What fuzzing has added (DIR/TARGET/found-*)
# and what once was a bug (DIR/TARGET/bug-*) is not touched.
import base64
import os
import struct
import sys

from handover_seeds import handover  # noqa: F401, by its name below

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def block(fields):
    out = b""
    for name, value in fields:
        assert len(name) < 127 and len(value) < 127
        out += b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
    return out


REQUEST = block([(":method", "POST"), (":scheme", "http"), (":path", "/pkg.Service/Method"), (":authority", "test"),
                 ("content-type", "application/grpc"), ("te", "trailers")])
RESPONSE = block([(":status", "200"), ("content-type", "application/grpc")])
TRAILERS = block([("grpc-status", "0")])


def grpc_timeout():
    for name, text in {"one-nano": "1n", "longest": "99999999H", "overflow": "99999999H", "eight-digits": "12345678u",
                       "zeros": "00000001S", "minutes": "5M", "millis": "250m", "no-unit": "15", "nine-digits": "123456789S",
                       "bad-unit": "1x", "no-digits": "S", "minus": "-1S", "space": "1 S"}.items():
        yield name, text.encode()


def canonical():
    for name, text in {"path": "/pkg.Admin/Delete", "query": "/pkg.Admin/Delete?x", "encoded": "/pkg%2EAdmin/%2544elete",
                       "dots": "/x/../pkg.Admin//Delete/.", "params": "/pkg.Admin;a=b/Delete", "backslash": "/pkg.Admin\\Delete",
                       "host": "admin.test", "port": "Admin.Test.:0443", "ipv6": "[2001:DB8::1]:80", "zone": "[fe80::1%25eth0]",
                       "two-ports": "a:80:80", "comma": "a,b"}.items():
        yield name, text.encode()


def trace_context():
    trace, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    binary = b"\0\0" + bytes.fromhex(trace) + b"\1" + bytes.fromhex(span) + b"\2\1"
    for name, text in {"sampled": f"00-{trace}-{span}-01", "later": f"cc-{trace}-{span}-01-more", "version": f"ff-{trace}-{span}-01",
                       "longer": f"00-{trace}-{span}-01-more", "zero-trace": f"00-{'0' * 32}-{span}-01",
                       "zero-span": f"00-{trace}-{'0' * 16}-01", "upper": f"00-{trace.upper()}-{span}-01",
                       "state": "a=1, t@s=2,,0b_-*/= x", "bad-state": "A=1", "members": ",".join(f"a{i}=1" for i in range(33)),
                       "binary": base64.b64encode(binary).decode(), "unpadded": base64.b64encode(binary).decode().rstrip("="),
                       "no-options": base64.b64encode(binary[:27]).decode(), "cut": base64.b64encode(binary[:20]).decode(),
                       "unknown-field": base64.b64encode(binary[:27] + b"\7ab").decode()}.items():
        yield name, text.encode()


# A byte of options (1: the request is text, 2: the response), then steps: 0 a piece of the request, 2 its last, 3 a message, 5 a read,
# 6 the trailers, 7 a reset.
def grpc_web():
    def ask(data, end=False):
        return bytes([2 if end else 0, len(data)]) + data

    def answer(data, message=True):
        return bytes([3, 1 if message else 0, len(data)]) + data

    body = b"\0\0\0\0\3abc"
    text = base64.b64encode(body)
    read, trailers = b"\5\0\7", b"\6"
    for name, data in {"binary": b"\0" + ask(body, True) + answer(b"xyz") + read + trailers,
                       "text": b"\3" + ask(text, True) + answer(b"xyz") + answer(b"") + read + trailers,
                       "text-in-pieces": b"\3" + b"".join(ask(text[i:i + 1]) for i in range(len(text))) + ask(b"", True) + trailers,
                       "padding-inside": b"\1" + ask(b"YQ==YWI=YWJj", True) + answer(b"a") + trailers,
                       "no-base64": b"\3" + ask(b"YW*j") + answer(b"a"), "cut": b"\3" + ask(b"YWJ", True),
                       "bad-after-answer": b"\3" + ask(b"YWJj") + answer(b"a") + ask(b"?"),
                       "half-message": b"\2" + answer(b"\0\0\0\0\7ab", False) + trailers,
                       "trailers-as-message": b"\2" + answer(b"\x80\0\0\0\0", False) + trailers,
                       "message-in-pieces": b"\2" + b"".join(answer(body[i:i + 1], False) for i in range(len(body))) + read + trailers,
                       "reset": b"\3" + ask(b"YWJj") + answer(b"a") + b"\7\0"}.items():
        yield name, data


def hpack_blocks(*blocks):
    return b"".join(bytes([len(b)]) + b for b in blocks)


def hpack_decode():
    h = bytes.fromhex
    c3 = [h("828684410f7777772e6578616d706c652e636f6d"), h("828684be58086e6f2d6361636865"),
          h("828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565")]
    c4 = [h("828684418cf1e3c2e5f23a6ba0ab90f4ff"), h("828684be5886a8eb10649cbf"),
          h("828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf")]
    yield "rfc7541-c2-literal-indexed", hpack_blocks(h("400a637573746f6d2d6b65790d637573746f6d2d686561646572"))
    yield "rfc7541-c2-literal-plain", hpack_blocks(h("040c2f73616d706c652f70617468"))
    yield "rfc7541-c2-literal-never", hpack_blocks(h("100870617373776f726406736563726574"))
    yield "rfc7541-c3-requests", hpack_blocks(*c3)
    yield "rfc7541-c4-requests-huffman", hpack_blocks(*c4)
    yield "same-block-again", hpack_blocks(c3[0], c3[0], c3[0], c3[0])
    yield "size-update-to-zero", hpack_blocks(c3[0], b"\x20" + c3[0], b"\x3f\xe1\x1f" + c3[0])
    yield "size-update-above-ours", hpack_blocks(b"\x3f\xe2\x1f")
    yield "size-update-behind-a-field", hpack_blocks(b"\x82\x20")
    yield "table-lowered-update-missing", b"\xfb" + hpack_blocks(c3[0])
    yield "table-lowered-update-sent", b"\xfb" + hpack_blocks(b"\x3f\x02" + c3[0])
    yield "index-zero", hpack_blocks(b"\x80")
    yield "index-behind-the-end", hpack_blocks(b"\xbe")
    yield "integer-without-end", hpack_blocks(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")
    yield "integer-padded", hpack_blocks(b"\xff\x80\x80\x80\x80\x00")
    yield "string-cut", hpack_blocks(b"\x00\x05abc")
    yield "huffman-eos", hpack_blocks(b"\x00\x84\xff\xff\xff\xff\x00")
    yield "huffman-padding-too-long", hpack_blocks(b"\x00\x82\x1f\xff\x00")
    yield "entry-larger-than-the-table", b"\xfb" + hpack_blocks(b"\x3f\x02\x40\x05aaaaa\x05bbbbb")
    yield "bomb", hpack_blocks(b"\x40\x01a\x7f\x50" + b"b" * 207, b"\xbe" * 200, b"\xbe" * 200)


def hpack_round_trip():
    usual = bytes([7] + [3, 0, 1, 3, 1, 4, 1, 3, 6, 0, 4, 4, 3, 7, 7, 0x40, 5, 5]) + b"hello" + bytes([1, 9, 2])
    yield "request-again-and-again", usual * 4
    yield "never-indexed", bytes([2, 2, 10, 2, 0x42, 10, 6]) + b"secret"
    yield "table-sizes", bytes([16]) + usual + bytes([17]) + usual + bytes([22]) + usual + bytes([0x90]) + usual
    yield "long-values", bytes([3, 0x30, 5, 0, 0xff, 0xff, 0x31, 5, 0, 0x7f, 0x33, 5, 0, 0x84, 0])
    yield "many-names", b"".join(bytes([4]) + b"".join(bytes([0x81, 2]) + b"%c%d" % (97 + i, k) + bytes([1]) for k in range(4))
                                 for i in range(12))
    yield "nothing", bytes([0, 0, 0])


def frame_corpus():
    head = frame(1, 4, 1, REQUEST)
    server = bytes([0, 3])
    conversation = (frame(4, 0, 0, struct.pack(">HIHI", 4, 100, 5, 20000)) + frame(4, 1, 0) + frame(6, 0, 0, b"12345678") +
                    frame(1, 0, 1, REQUEST[:10]) + frame(9, 0, 1, REQUEST[10:13]) + frame(9, 4, 1, REQUEST[13:]) +
                    frame(0, 8, 1, b"\x07hello" + bytes(7)) + frame(1, 0x2d, 3, b"\x02" + bytes(4) + b"w" + REQUEST + b"pp") +
                    frame(0, 0, 1, b"world") + frame(8, 0, 1, struct.pack(">I", 77)) + frame(0x42, 0, 9, b"unknown") +
                    frame(1, 5, 1, TRAILERS) + frame(7, 0, 0, bytes(8) + b"done"))
    yield "server-conversation", server + conversation
    yield "server-small-limits", bytes([2, 5]) + conversation
    yield "server-data-cut", server + head + frame(0, 1, 1, b"x" * 40)[:-20]
    yield "server-continuation-missing", server + frame(1, 0, 1, REQUEST[:20]) + frame(0, 0, 1, b"x")
    yield "server-continuation-flood", bytes([2, 1]) + frame(1, 0, 1, REQUEST[:9]) + frame(9, 0, 1) * 300
    yield "server-ping-flood", bytes([2, 1]) + frame(6, 0, 0, b"12345678") * 40
    yield "server-settings-flood", bytes([2, 1]) + frame(4, 0, 0) * 40
    yield "server-rapid-reset", bytes([2, 1]) + b"".join(frame(1, 5, i, REQUEST) + frame(3, 0, i, bytes([0, 0, 0, 8]))
                                                       for i in range(1, 41, 2))
    yield "server-empty-data", server + head + frame(0, 0, 1) * 50 + frame(0, 1, 1)
    yield "server-window-overflow", server + head + frame(8, 0, 0, b"\x7f\xff\xff\xff")
    yield "server-window-zero", server + head + frame(8, 0, 1, bytes(4)) + frame(8, 0, 0, bytes(4))
    yield "server-push-promise", server + frame(5, 4, 1, bytes(4))
    yield "server-frame-too-large", server + struct.pack(">I", 16385)[1:] + bytes([0, 0, 0, 0, 0, 1])
    yield "server-even-stream", server + frame(1, 4, 2, REQUEST)
    yield "server-header-list-too-large", bytes([2, 1]) + frame(1, 5, 1, REQUEST + block([("x-long", "v" * 100)] * 12))
    client = bytes([1, 3])
    answers = frame(1, 4, 1, RESPONSE) + frame(0, 0, 1, b"hello") + frame(1, 5, 1, TRAILERS)
    yield "client-answers", client + answers + frame(1, 5, 3, RESPONSE + TRAILERS) + frame(3, 0, 5, bytes([0, 0, 0, 7]))
    yield "client-interim", client + frame(1, 4, 1, block([(":status", "103")])) + answers
    yield "client-goaway", client + frame(7, 0, 0, bytes([0, 0, 0, 1]) + bytes(4)) + answers
    yield "client-data-before-head", client + frame(0, 0, 1, b"x") + answers
    yield "client-content-length", client + frame(1, 4, 1, RESPONSE + block([("content-length", "3")])) + frame(0, 1, 1, b"four")


def message_field():
    head = bytes([0, 0, 7, 0x40])
    yield "varint", head + b"\x08\x96\x01"
    yield "string", head + b"\x0a\x03abc"
    yield "fixed", head + b"\x0d\1\2\3\4\x09\1\2\3\4\5\6\7\x08"
    yield "last-one-wins", head + b"\x0a\x01a\x12\x01x\x0a\x01b\x0a\x00"
    yield "nested", bytes([1, 2, 0, 9, 0x40]) + b"\x1a\x03\x0a\x01a\x1a\x03\x12\x01x\x1a\x00"
    yield "group", head + b"\x1b\x08\x07\x1c\x08\x08"
    yield "groups-too-deep", head + b"\x1b" * 101 + b"\x1c" * 101
    yield "group-without-end", head + b"\x1b\x08\x07"
    yield "field-number-zero", head + b"\x00\x01"
    yield "varint-of-eleven-bytes", head + b"\x08" + b"\xff" * 10 + b"\x01"
    yield "runs-over-its-message", bytes([1, 2, 0, 9, 0x40]) + b"\x1a\x02\x0a\x03abc"
    yield "cut-by-the-limit", bytes([0, 0, 3, 4]) + b"\x0a\x06abcdef\x0a\x01z"


def config():
    minimal = ("listeners:\n  - address: 127.0.0.1:7070\nclusters:\n  - name: users\n    endpoints: [10.0.0.1:50051]\n"
               "routes:\n  - cluster: users\n")
    yield "minimal", minimal.encode()
    yield "everything-in-flow-style", (b"{listeners: [{address: '127.0.0.1:1', http2: {concurrent_streams_max: 7}}], clusters: "
                                       b"[{name: a, policy: round_robin, endpoints: ['h:1']}], routes: [{cluster: a}]}\n")
    yield "unknown-key", (minimal + "workerss: 2\n").encode()
    yield "twice-the-same-key", (minimal + "workers: 1\nworkers: 2\n").encode()
    yield "anchors", (minimal + "access_log: &a {format: json}\nlog: *a\n").encode()
    yield "limits-and-cache", (minimal + "    rate_limit: {rate: 10, burst: 5}\n    cache:\n      methods:\n"
                               "        - {path: /a.B/C, ttl: 1s}\n").encode()
    yield "durations", (minimal + "drain_timeout: 1h\n").encode()
    yield "deep", b"a: " + b"[" * 60
    yield "not-utf8", minimal.encode() + b"log: {path: \"\xff\xfe\"}\n"
    yield "two-documents", (minimal + "---\n" + minimal).encode()
    yield "empty", b"\n"


DESCRIPTOR = ('file { name: "a.proto" package: "p" message_type { name: "M" field { name: "id" number: 1 label: LABEL_OPTIONAL '
              'type: TYPE_STRING } field { name: "m" number: 2 label: LABEL_OPTIONAL type: TYPE_MESSAGE type_name: ".p.M" } } '
              'service { name: "S" method { name: "Get" input_type: ".p.M" output_type: ".p.M" } } }')


def descriptor_set():
    def text(path, rest):
        return bytes([0x80 | len(path)]) + path + rest.encode()
    yield "text-service", text(b"m.m.id", DESCRIPTOR)
    yield "text-path-too-deep", text(b"m." * 17 + b"id", DESCRIPTOR)
    yield "text-path-of-dots", text(b"..", DESCRIPTOR)
    yield "text-import-missing", text(b"id", DESCRIPTOR.replace('package', 'dependency: "b.proto" package'))
    yield "text-imports-itself", text(b"id", DESCRIPTOR.replace('package', 'dependency: "a.proto" package'))
    yield "text-import-in-a-circle", text(b"id", 'file { name: "a" dependency: "b" } file { name: "b" dependency: "a" }')
    yield "text-same-file-twice", text(b"id", DESCRIPTOR + DESCRIPTOR)
    yield "text-no-such-type", text(b"id", DESCRIPTOR.replace('".p.M" }', '".p.N" }'))
    yield "text-repeated-field", text(b"id", DESCRIPTOR.replace("LABEL_OPTIONAL", "LABEL_REPEATED", 1))
    yield "binary-one-message", b"\x02id" + bytes.fromhex("0a1b0a07612e70726f746f1201702a0d0a014d120802696418012001280900")
    yield "binary-cut", b"\x02id\x0a\x7f\x0a\x07a.proto"
    yield "binary-empty", b"\x02id"


def xds():
    def varint(value):
        out = b""
        while value > 127:
            out += bytes([value & 127 | 128])
            value >>= 7
        return out + bytes([value])
    def field(number, value):
        if isinstance(value, int):
            return varint(number << 3) + varint(value)
        return varint(number << 3 | 2) + varint(len(value)) + value
    def wrapped(value):
        return field(1, value)
    def endpoint(address, port, weight=None, health=0, key=None):
        out = field(1, field(1, field(1, field(2, address) + field(3, port)))) + field(2, health)
        if key is not None:
            out += field(3, field(1, field(1, b"envoy.lb") + field(2, field(1, field(1, b"hash_key") + field(2, field(3, key))))))
        return out + (field(4, wrapped(weight)) if weight is not None else b"")
    def locality(endpoints, weight=1, priority=0):
        return (field(1, field(1, b"eu") + field(2, b"a")) + b"".join(field(2, e) for e in endpoints) +
                (field(3, wrapped(weight)) if weight is not None else b"") + field(5, priority))
    def assignment(*localities, name=b"s"):
        return field(1, name) + b"".join(field(2, one) for one in localities)
    def cluster(name, kind=3, source=3, service=b"s"):
        return field(1, name) + field(2, kind) + field(3, field(1, field(source, b"")) + field(2, service))
    def response(kind, *resources, wrap=None):
        url = b"type.googleapis.com/envoy.config." + kind
        packed = [field(1, url) + field(2, one) for one in resources]
        if wrap is not None:
            packed = [field(1, b"type.googleapis.com/envoy.service.discovery.v3.Resource") +
                      field(2, field(3, wrap) + field(2, one)) for one in packed]
        return field(1, b"7") + b"".join(field(2, one) for one in packed) + field(4, url) + field(5, b"n")
    cds, eds = b"cluster.v3.Cluster", b"endpoint.v3.ClusterLoadAssignment"
    # Follow, begin, clusters, the response, time, a new stream, the response.
    story = bytes([7]) + bytes([0, 2, 5, 4, 6, 2, 4])
    plain = endpoint(b"10.0.0.1", 80)
    yield "one-endpoint", story + response(eds, assignment(locality([plain])))
    yield "weights", story + response(eds, assignment(locality([endpoint(b"10.0.0.1", 80, 6), endpoint(b"10.0.0.2", 80, 4)], 3),
                                                      locality([endpoint(b"::1", 80, 9)], 2)))
    yield "no-weights", story + response(eds, assignment(locality([plain], None), locality([endpoint(b"10.0.0.2", 1)], None)))
    yield "weight-zero", story + response(eds, assignment(locality([endpoint(b"10.0.0.1", 80, 0)]), locality([plain], 0)))
    yield "priorities", story + response(eds, assignment(locality([plain]), locality([endpoint(b"10.0.0.2", 1)], 1, 1)))
    yield "priority-gap", story + response(eds, assignment(locality([plain]), locality([endpoint(b"10.0.0.2", 1)], 1, 3)))
    yield "priority-too-low", story + response(eds, assignment(locality([plain], 1, 9)))
    yield "sick", story + response(eds, assignment(locality([endpoint(b"10.0.0.%d" % i, 1, None, i) for i in range(7)])))
    yield "hash-keys", story + response(eds, assignment(locality([endpoint(b"10.0.0.1", 1, None, 0, b"k"),
                                                                  endpoint(b"10.0.0.2", 1, None, 0, b"k"),
                                                                  endpoint(b"10.0.0.3", 1, None, 0, b"10.0.0.2:1")])))
    yield "twice-the-same-address", story + response(eds, assignment(locality([plain, plain])))
    yield "a-name-for-an-address", story + response(eds, assignment(locality([endpoint(b"backend.example.com", 80)])))
    yield "port-too-large", story + response(eds, assignment(locality([endpoint(b"10.0.0.1", 70000)])))
    yield "empty-list", story + response(eds, assignment())
    yield "not-asked-for", story + response(eds, assignment(locality([plain]), name=b"other"))
    yield "one-bad-of-two", story + response(eds, assignment(locality([plain])), assignment(locality([plain], 1, 9), name=b"a"))
    yield "cluster", story + response(cds, cluster(b"a"), cluster(b"b", service=b""))
    yield "cluster-static", story + response(cds, cluster(b"a", 0))
    yield "cluster-of-a-path", story + response(cds, cluster(b"a", 3, 1))
    yield "cluster-left-out", story + response(cds, cluster(b"b"))
    yield "cluster-left-out-ignored", bytes([7 | 32]) + story[1:] + response(cds, cluster(b"b"))
    yield "wrapped", story + response(cds, cluster(b"a"), wrap=b"a")
    yield "wrapped-garbage", story + response(cds, b"\xff", wrap=b"a")
    yield "twice-the-same-name", story + response(cds, cluster(b"a"), cluster(b"a"))
    yield "another-type", story + response(b"listener.v3.Listener", b"")
    yield "another-server", bytes([7 | 64]) + story[1:] + response(eds, assignment(locality([plain])))
    yield "bare-assignment", bytes([7 | 128]) + story[1:] + assignment(locality([plain]))
    yield "no-response", story + b"\xff\xff"
    yield "time-passes", bytes([9, 0, 2, 6, 6, 4, 1, 6, 3, 6]) + response(eds, assignment(locality([plain])))


def admin():
    def field(number, value):
        if isinstance(value, int):
            return bytes([number << 3, value])
        return bytes([number << 3 | 2, len(value)]) + value
    endpoint = field(1, b"a") + field(2, b"10.0.0.9:1") + bytes([3 << 3 | 1]) + struct.pack("<d", 2)
    for kind, name in enumerate(["replace", "add", "remove", "reweight", "drain", "undrain"], 1):
        yield f"endpoints-{name}", bytes([2]) + field(1, b"users") + field(2, kind) + field(3, endpoint)
    nan = bytes([3 << 3 | 1]) + struct.pack("<d", float("nan"))
    yield "endpoints-weight-nan", bytes([2]) + field(1, b"users") + field(2, 2) + field(3, field(2, b"h:1") + nan)
    yield "endpoints-version-and-preview", bytes([2]) + field(1, b"users") + field(2, 2) + field(3, endpoint) + field(4, 7) + field(5, 1)
    yield "endpoints-kind-unknown", bytes([2]) + field(1, b"users") + field(2, 77) + field(3, endpoint)
    yield "clusters-one", bytes([1]) + field(1, b"users")
    yield "clusters-none-such", bytes([1]) + field(1, b"absent")
    yield "limit-max", bytes([4]) + field(1, b"process/concurrency") + field(4, 5)
    yield "limit-reset-and-more", bytes([4]) + field(1, b"process/concurrency") + field(4, 5) + field(6, 1)
    yield "purge-key", bytes([6]) + field(1, b"pkg.S") + field(2, b"Get") + field(3, b"key")
    yield "purge-key-alone", bytes([6]) + field(3, b"key")
    yield "log-level", bytes([9]) + field(1, b"debug")
    yield "drain-a-day-and-more", bytes([11, 8, 0x81, 0xb8, 0x99, 0x29])
    for which, name in enumerate(["server", "all-clusters", None, "limits", None, "cache", None, "reload", "metrics", None,
                                  "get-log-level", None, "stop"]):
        if name:
            yield name, bytes([which])
    for name, text in {"v4": "127.0.0.1:9000", "v6": "[::1]:9000", "unix": "unix:/run/s.sock", "name": "localhost:0",
                       "port-too-large": "h:65536", "no-port": "h", "empty-host": ":80"}.items():
        yield f"address-{name}", bytes([13]) + text.encode()
    for target in ["/", "/metrics", "/healthz", "/readyz", "/nothing?<b>", "/metrics?x=1"]:
        yield "http-" + (target.strip("/").replace("?", "-").replace("<b>", "escaped") or "page"), bytes([14, 3]) + b"GET" + target.encode()
    yield "http-post", bytes([14, 4]) + b"POST/metrics"


def admin_http():
    for name, text in {"page": "GET / HTTP/1.1\r\nHost: [::1]:1\r\n\r\n", "head": "HEAD /metrics HTTP/1.1\r\nHost: [::1]:1\r\n\r\n",
                       "old": "GET /healthz HTTP/1.0\r\n\r\n", "post": "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
                       "two": "GET /readyz HTTP/1.1\r\n\r\nGET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n",
                       "chunked": "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
                       "no-version": "GET /\r\n\r\n", "nonsense": "\x16\x03\x01\x02", "http2-preface": PREFACE.decode(),
                       "long-header": "GET / HTTP/1.1\r\nX: " + "x" * 9000 + "\r\n\r\n", "cut": "GET / HT",
                       "absolute": "GET http://a/metrics HTTP/1.1\r\nHost: [::1]:1\r\n\r\n",
                       "both-lengths": "GET / HTTP/1.1\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"}.items():
        yield name, b"\x00" + text.encode("latin-1")
    yield "in-four-pieces", b"\x03GET /metrics HTTP/1.1\r\nHost: [::1]:1\r\n\r\n"


# Steps of support/session_driver.h. Kinds of frames: support/peer_frames.h.
NOW = 0x40  # is fed at once
HEAD = bytes([NOW | 0, 0, 0, 0, 0])         # a client's request that goes on
HEAD_END = bytes([NOW | 1, 0, 0, 0, 0])     # and one that ends with it
ANSWER = bytes([NOW | 0, 0, 0, 0, 0])       # a server's head, :status 200
MESSAGE = bytes([NOW | 3, 0, 0, 20])        # a client's, which ends the stream
TRAILER = bytes([NOW | 4, 0, 0, 0])
RESET = bytes([NOW | 5, 0, 4])
WRITE = bytes([0x85])
OPEN, OPEN_END = bytes([0x89, 0]), bytes([0x89, 1])


def act(what, which=0):
    return bytes([0x86, what, which])


RESPOND, BODY, BODY_LONG, END, CONSUME, CANCEL, RELEASE = 0, 0x22, 0x72, 5, 0x87, 10, 11


def settings(*entries):
    return bytes([NOW | 7, len(entries)]) + b"".join(bytes(e) for e in entries)


def server_session():
    start = bytes([0, 1])
    unary = HEAD + MESSAGE + act(RESPOND) + act(BODY) + act(END) + WRITE + act(RELEASE)
    yield "unary", start + unary * 3
    yield "small-limits", bytes([0xff, 1]) + unary * 3
    yield "fed-byte-by-byte", start + bytes([0, 0, 0, 0, 0]) + bytes([3, 0, 0, 20]) + bytes([0x80, 3]) * 60
    yield "streams-refused", bytes([1, 1]) + HEAD * 5 + act(RESPOND) + act(END) + WRITE + HEAD
    yield "rapid-reset", bytes([0x81, 1]) + (HEAD + RESET) * 12
    yield "peer-resets-what-is-queued", start + HEAD + act(RESPOND) + act(BODY_LONG) + RESET + WRITE
    yield "trailers-behind-data", start + HEAD_END + act(RESPOND) + act(BODY_LONG) + act(END) + WRITE + bytes([NOW | 6, 0, 5]) + \
        bytes([NOW | 6, 1, 0, 5]) + WRITE
    yield "released-while-it-drains", start + HEAD_END + act(RESPOND) + act(BODY_LONG) + act(END) + act(RELEASE) + WRITE + \
        bytes([NOW | 6, 0, 5, NOW | 6, 1, 0, 5]) + WRITE
    yield "window-shrinks-below-zero", start + HEAD_END + act(RESPOND) + act(0x52) + settings((4, 1)) + act(0x52) + \
        settings((4, 6)) + WRITE
    yield "window-overflows", start + HEAD + bytes([NOW | 6, 1, 0, 7]) * 2
    yield "table-sizes", start + settings((1, 0)) + unary + settings((1, 4)) + unary + settings((1, 3), (1, 4)) + unary
    yield "goaway-in-two-steps", start + HEAD + bytes([0x8a]) + bytes([NOW | 8, 1]) + HEAD + act(RESPOND) + act(END) + WRITE
    yield "goaway-now", start + HEAD + bytes([0x8b, 0]) + HEAD + act(RESPOND) + act(END)
    yield "continuations", start + bytes([NOW | 11, 0, 0, 0, 0, 9, 5, 0])
    yield "continuation-flood", bytes([0x20, 1]) + bytes([NOW | 15, 11, 0, 0, 0, 0, 9, 19, 7, 60])
    yield "ping-flood", bytes([0x80, 1]) + bytes([NOW | 15, 8, 2, 63])
    yield "settings-flood", bytes([0x80, 1]) + bytes([NOW | 15, 7, 0, 63])
    yield "data-beyond-the-window", bytes([2, 1]) + HEAD + bytes([NOW | 2, 0, 0x40, 0xff, 0xff]) * 2
    yield "padded-data", start + HEAD + bytes([NOW | 2, 0, 2, 50, 200]) * 3
    yield "releases-inside-events", start + bytes([0x8e, 15, 11]) + HEAD + MESSAGE + HEAD + RESET + HEAD
    yield "answers-inside-events", start + bytes([0x8d, 0, 0x8d, 0x22, 0x8d, 5]) + HEAD + MESSAGE + WRITE
    yield "consumes-inside-events", bytes([2, 1]) + bytes([0x8e, 15, 0x87]) + HEAD + bytes([NOW | 2, 0, 0, 0xa0, 0]) * 6
    yield "slices-kept", start + bytes([0x8f]) + HEAD + bytes([NOW | 2, 0, 0, 0xa0, 0]) * 3 + act(CONSUME) + bytes([0x91]) + \
        bytes([NOW | 2, 0, 0, 0xa0, 0]) * 3
    yield "too-large-a-list", bytes([4, 1]) + bytes([NOW | 0, 0, 0, 0, 7] + [21, 0] * 7)
    yield "forbidden-fields", start + b"".join(bytes([NOW | 0, 0, 0, 0, 1, extra, 0]) for extra in range(40))
    yield "indexed-fields", start + b"".join(bytes([NOW | 0, 0, 0, 0, 0x12, 22, 1, 22, 3]) for _ in range(6))
    yield "wrong-ids", start + b"".join(bytes([NOW | 13, k, 4, 0xe0 + i, 4]) + b"abcd" for i in range(10) for k in (0, 1, 8))
    yield "transport-ends", start + HEAD + act(RESPOND) + act(BODY_LONG) + bytes([0x92, 0, 1])
    yield "no-preface", bytes([0, 0xf0]) + HEAD


def client_session():
    start = bytes([0, 1])
    told = bytes([0x82])
    unary = OPEN + act(BODY) + act(0xc2) + WRITE + ANSWER + bytes([NOW | 3, 0, 0, 20]) + TRAILER + act(CONSUME) + act(RELEASE)
    yield "unary", start + told + unary * 3
    yield "small-limits", bytes([0xff, 1]) + told + unary * 3
    yield "trailers-only", start + told + OPEN_END + WRITE + bytes([NOW | 1, 0, 0, 0, 1, 25, 0])
    yield "interim-answers", start + told + OPEN_END + WRITE + bytes([NOW | 0, 0, 0, 4, 0]) * 3 + ANSWER + TRAILER
    yield "answer-without-a-head", start + told + OPEN + WRITE + bytes([NOW | 2, 0, 0, 10])
    yield "answer-after-the-end", start + told + OPEN_END + WRITE + ANSWER + TRAILER + ANSWER + TRAILER
    yield "refused", start + told + OPEN + WRITE + bytes([NOW | 5, 0, 3])
    yield "goaway-refuses-the-later", start + told + OPEN * 4 + WRITE + bytes([NOW | 9, 1, 3, 0]) + ANSWER + TRAILER
    yield "goaway-inside-events", start + told + OPEN * 4 + WRITE + bytes([0x8e, 3, 0x2d, NOW | 9, 1, 3, 0])
    yield "streams-limit", start + told + settings((3, 2)) + OPEN * 4 + WRITE + ANSWER + TRAILER + OPEN
    yield "streams-limit-zero", start + told + settings((3, 0)) + OPEN
    yield "upload-under-windows", start + told + settings((4, 3)) + OPEN + act(0x72) + act(0xf2) + WRITE + \
        bytes([NOW | 6, 0, 4, NOW | 6, 1, 0, 3]) + WRITE
    yield "window-changes", start + told + OPEN + act(0x72) + settings((4, 0)) + settings((4, 8)) + WRITE + settings((4, 9))
    yield "push-promise", start + told + OPEN + WRITE + bytes([NOW | 13, 5, 4, 0, 8]) + b"\0\0\0\2abcd"
    yield "push-enabled", start + told + settings((2, 1))
    yield "content-length", start + told + OPEN_END + WRITE + bytes([NOW | 0, 0, 0, 0, 1, 4, 0]) + bytes([NOW | 2, 0, 1, 5])
    yield "download-kept", bytes([2, 1]) + told + OPEN_END + WRITE + ANSWER + bytes([0x8f]) + \
        bytes([NOW | 2, 0, 0, 0xa0, 0]) * 5 + act(CONSUME) + bytes([NOW | 2, 0, 0, 0xa0, 0]) * 3
    yield "opens-inside-events", start + told + OPEN + WRITE + bytes([0x8e, 15, 0x0f]) + ANSWER + TRAILER
    yield "transport-ends-unwritten", start + told + OPEN + WRITE + OPEN + bytes([0x92, 0, 1])
    yield "released-early", start + told + OPEN + act(RELEASE) + WRITE + ANSWER + TRAILER


# Steps of proxy_fuzz.cc: [workers, three bytes of options] and then these. A turn follows where the high bit is set.
def proxy():
    def client(kind, *choices):  # a frame of this kind, from the newest client on
        return bytes([(kind & 7) << 5 | (kind >> 3 & 1), 0]) + bytes(choices)

    def backend(kind, *choices):
        return bytes([(kind & 7) << 5 | (8 if kind & 8 == 0 else 7), 0]) + bytes(choices)
    turn = bytes([0x9d])
    request = client(0, 0, 0, 0, 0) + client(3, 0, 0, 20) + turn
    answer = bytes([0xce, 0, 0])
    part = bytes([0x8e, 0, 0])
    soon, later = bytes([19]), bytes([17, 255])
    for name, options in {"plain": (0, 0, 0, 0), "moved": (1, 0, 0, 0), "ring-and-cache": (0, 1, 0x52, 0),
                          "limits": (0, 0x69, 1, 0x60), "hash-by-field": (0, 1, 0x20, 0), "small-http2": (1, 0, 0, 0x1f),
                          "keepalive-and-idle": (0, 0x90, 0, 0)}.items():
        o = bytes(options)
        yield f"{name}-unary", o + (request + answer) * 3
        yield f"{name}-no-answer", o + request * 3 + later * 5
        yield f"{name}-client-resets", o + request + part + client(5, 0, 4) + turn + answer
        yield f"{name}-backend-resets", o + request + backend(5, 0, 3) + turn + answer + request + part + backend(5, 0, 2) + turn
        yield f"{name}-many", o + request * 6 + answer * 2 + later + answer * 4
    o = bytes(4)
    yield "backend-goes-away", o + request + backend(9, 0, 0) + turn + answer + request
    yield "backend-closes", o + request + bytes([0x56, 0, 0]) + turn + soon * 3 + request + answer
    yield "backend-breaks", o + request + part + bytes([0xb6, 0, 0]) + turn
    yield "backend-refuses", o + bytes([0xb7, 0, 0xb7, 1, 0xb7, 2]) + request + later * 3
    yield "backend-hangs", o + bytes([0x97, 0, 0x97, 1, 0x97, 2]) + request + later * 3
    yield "client-closes", o + request * 2 + bytes([0x56, 1, 0]) + turn + answer
    yield "client-stops-reading", o + bytes([0x94, 1, 0]) + request * 2 + part * 4 + later
    yield "client-says-nonsense", o + client(13, 9, 255, 0xe9, 4) + b"abcd" + turn
    yield "list-changes", o + request + bytes([0x58]) + turn + answer + request + bytes([0x98]) + request + answer * 2 + later * 3
    yield "drain-in-the-middle", o + request * 2 + bytes([0x9c]) + turn + answer * 2
    yield "cache-purged", bytes([0, 1, 0x52, 0]) + request + answer + request + bytes([0x99]) + request + answer
    yield "three-clients", o + bytes([0x9a, 0x9a]) + request * 2 + answer * 2
    yield "retries", bytes([0, 0, 0x0c, 0]) + request + backend(5, 0, 3) + turn + backend(5, 0, 3) + turn + answer


# A byte of dns_reply_fuzz.cc (record type, mode), and an answer (RFC 1035 4.1).
def dns_reply():
    def name(text):
        return b"".join(bytes([len(label)]) + label.encode() for label in text.split(".") if label) + b"\0"

    def record(kind, ttl, data, owner=b"\xc0\x0c"):
        return owner + struct.pack(">HHIH", kind, 1, ttl, len(data)) + data

    def answer(kind, *records, flags=0x8180, count=None):
        header = struct.pack(">HHHHHH", 7, flags, 1, len(records) if count is None else count, 0, 0)
        return header + name("users.test") + struct.pack(">HH", kind, 1) + b"".join(records)

    def srv(priority, weight, port, host, ttl=30):
        return record(33, ttl, struct.pack(">HHH", priority, weight, port) + host)
    a, aaaa = [record(1, 60, bytes([10, 0, 0, i])) for i in range(1, 101)], record(28, 60, bytes(range(16)))
    alias = record(5, 20, name("a.test"))
    yield "a-one", b"\0" + answer(1, a[0])
    yield "a-hundred", b"\0" + answer(1, *a)
    yield "a-one-of-two", b"\x81" + answer(1, a[0], a[1])
    yield "a-none", b"\0" + answer(1)
    yield "a-alias", b"\0" + answer(1, alias, record(1, 60, b"\x0a\0\0\1", name("a.test")))
    yield "a-alias-in-a-circle", b"\0" + answer(1, record(5, 20, b"\xc0\x0c"))
    yield "a-alias-only", b"\0" + answer(1, alias)
    yield "a-ttl-zero", b"\0" + answer(1, record(1, 0, b"\x0a\0\0\1"))
    yield "a-ttl-high", b"\0" + answer(1, record(1, 0xffffffff, b"\x0a\0\0\1"))
    yield "a-too-short", b"\0" + answer(1, record(1, 60, b"\x0a\0"))
    yield "a-count-too-large", b"\0" + answer(1, a[0], count=65535)
    yield "a-cut-off", b"\0" + answer(1, a[0])[:-3]
    yield "aaaa-one", b"\1" + answer(28, aaaa)
    yield "aaaa-of-both", b"\1" + answer(28, a[0], aaaa)
    yield "srv-two", b"\2" + answer(33, srv(1, 60, 5, name("a.test")), srv(2, 0, 6, name("b.test")))
    yield "srv-weights", b"\2" + answer(33, *[srv(i % 9 * 10, i, i, name("h.test")) for i in range(40)])
    yield "srv-one", b"\x80" + answer(33, srv(1, 60, 5, name("a.test")))
    yield "srv-one-of-many", b"\x80" + answer(33, *[srv(i % 3, i, 1, name(f"h{i}.test")) for i in range(20)])
    yield "srv-root", b"\2" + answer(33, srv(0, 0, 0, name(".")))
    yield "srv-pointer", b"\2" + answer(33, srv(0, 0, 1, b"\1h\xc0\x0c"))
    yield "srv-pointer-to-itself", b"\2" + answer(33, srv(0, 0, 1, b"\xc0\x32"))
    yield "srv-label-too-long", b"\2" + answer(33, srv(0, 0, 1, b"\x7f" + b"a" * 127))
    yield "srv-port-zero", b"\2" + answer(33, srv(0, 1, 0, name("a.test")))
    yield "header-only", b"\0" + answer(1)[:12]
    yield "truncated", b"\0" + answer(1, flags=0x8380)


def etcd():
    def varint(value):
        out = b""
        while value > 127:
            out += bytes([value & 127 | 128])
            value >>= 7
        return out + bytes([value])

    def field(number, value):
        if isinstance(value, int):
            return varint(number << 3) + varint(value)
        return varint(number << 3 | 2) + varint(len(value)) + value

    def message(kind, *parts):
        body = b"".join(parts)
        return bytes([kind]) + struct.pack(">H", len(body)) + body
    header = field(1, field(1, 7) + field(2, 1) + field(3, 40))

    def kv(name, value):
        return field(1, b"/p/" + name) + field(2, 3) + field(3, 3) + field(5, value)
    json = b'{"address": "10.0.0.3:80", "weight": 2, "priority": 1, "locality": "eu"}'
    page = message(0, header, field(2, kv(b"a", b"10.0.0.1:80")), field(2, kv(b"b", b"[::1]:80@0.5")), field(2, kv(b"c", json)))
    yield "page", page
    yield "page-of-more", message(0, header, field(2, kv(b"a", b"h:1")), field(3, 1), field(4, 2))
    yield "page-bad-values", b"".join(message(0, header, field(2, kv(b"a", value))) for value in (
        b"", b"h", b"h:0", b"h:1@", b"h:1@0", b"h:1@101", b"h:1@nan", b"{}", b'{"address": 1}', b"{a: &a [*a]}", b"unix:/a@2", b"\0"))
    yield "page-bad-keys", message(0, header, field(2, field(1, b"/q/a") + field(5, b"h:1")), field(2, field(1, b"/p/") + field(5, b"h:1")),
                                   field(2, kv(b"\xff ", b"h:1")))
    yield "page-same-name", message(0, header, field(2, kv(b"a", b'{"address": "h:1", "name": "b"}')), field(2, kv(b"b", b"h:2")))
    yield "watch", page + message(1, header, field(3, 1)) + message(1, header, field(11, field(2, kv(b"d", b"h:4"))),
                                                                    field(11, field(1, 1) + field(2, field(1, b"/p/a"))))
    yield "watch-fragments", page + message(1, header, field(7, 1), field(11, field(2, kv(b"d", b"h:4")))) + message(
        1, header, field(11, field(2, kv(b"e", b"h:5"))))
    yield "watch-compacted", page + message(1, header, field(4, 1), field(5, 39)) + message(5) + page
    yield "watch-cancelled", message(1, header, field(4, 1), field(6, b"etcdserver: permission denied"))
    yield "token", message(2, header, field(2, b"abc.1"))
    yield "lease", message(3, header, field(2, 1234567), field(3, 10)) + message(3, header, field(2, 1234567))
    for name, value in {"plain": b"10.0.0.1:80", "weight": b"10.0.0.1:80@2", "json": json, "yaml": b"{address: h:1}",
                        "depth": b"{" * 40, "quotes": b'{"address": "h:1", "locality": "\\"\\\\"}'}.items():
        yield f"value-{name}", message(4, value)


def jwt():
    # Signed with the key of RFC 8037 A.1.
    good = (
        b"eyJhbGciOiJFZERTQSJ9.eyJpc3MiOiJtZSIsImV4cCI6MTcwMDAwMDA2MCwic3ViIjoiYSBiIiwiYSI6WyJ4IiwieSJdfQ.9FkdsmPVAdv9Qv"
        b"wGHv-y_P2ob6UC9VdyiEEqJAyQ2TfHKlQniZIummDxz4O_fmGwu7PHrd-taUVcrxah_9aWCA")
    yield "good", b"\0" + good
    yield "expired", b"\0" + (
        b"eyJhbGciOiJFZERTQSJ9.eyJpc3MiOiJtZSIsImV4cCI6MTYwMDAwMDAwMH0.QQ5l6iv0-bvR7iEMhRNbeMg4edRkJtGH990pjaWY-T5StEjBH"
        b"7wRic4dguicyIVUh1ycI0NmwWMX4Kqos3jWCg")
    yield "member-twice", b"\0" + (
        b"eyJhbGciOiJFZERTQSJ9.eyJpc3MiOiJtZSIsImV4cCI6MTcwMDAwMDA2MCwiZXhwIjoxfQ.z_Un1pAvM5uK_7IJVRIEMdNIRT8okVLv9tbqis"
        b"MX8qmTrDepcsJuknhSo1AlbfRse9oP9GeJeu_x6MIt8d96Ag")
    yield "kid-null", b"\0" + (
        b"eyJhbGciOiJFZERTQSIsImtpZCI6bnVsbH0.eyJpc3MiOiJtZSIsImV4cCI6MS43ZTksInN1YiI6Ilx1MDAwMCIsImEiOlsieCx5Il19.NLyLa"
        b"VSZKOhlPTd_VY9oXvIKRXACae0_Mvcp_uubMnv86DS5uOuRlp1OgQ5-TKz7jJ4bTJ-IK1C88Yltp_VMDw")
    yield "none", b"\0" + b"eyJhbGciOiJub25lIn0." + good.split(b".")[1] + b"."
    yield "padded", b"\0" + good + b"="
    yield "two", b"\0" + good + b"." + good
    ed = b'{"kty":"OKP","crv":"Ed25519","kid":"kid","use":"sig","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}'
    ec = (b'{"kty":"EC","crv":"P-256","alg":"ES256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",'
          b'"y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}')
    rsa = b'{"kty":"RSA","e":"AQAB","key_ops":["verify"],"n":"' + b"_" * 342 + b'w"}'
    yield "keys", b'\1{"keys":[' + b",".join((ed, ec, rsa, b'{"kty":"oct","k":"AAAA"}', b"7")) + b"]}"
    yield "keys-none", b'\1{"keys":[]}'
    yield "keys-many", b'\1{"keys":[' + b",".join([b"{}"] * 65) + b"]}"
    yield "json", b'\2{"a":[{"b":-1.5e3},"\\u00e9",true,null],"c":18446744073709551616}'
    yield "json-deep", b"\2" + b"[" * 9 + b"]" * 9
    yield "json-twice", b'\2{"a":1,"\\u0061":2}'
    yield "base64", b"\3AAECAwQFBgc"


def main():
    root = sys.argv[1]
    targets = {"frame": frame_corpus}
    for name in ("canonical", "grpc_timeout", "hpack_decode", "hpack_round_trip", "message_field", "config", "descriptor_set", "xds",
                 "admin", "admin_http", "server_session", "client_session", "proxy", "dns_reply", "etcd", "trace_context",
                 "jwt", "grpc_web", "handover"):
        targets[name] = globals()[name]
    for target, make in targets.items():
        os.makedirs(os.path.join(root, target), exist_ok=True)
        for name, data in make():
            with open(os.path.join(root, target, name), "wb") as file:
                file.write(data)


main()
