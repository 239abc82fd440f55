#!/usr/bin/env python3
# What clusters that follow long lists of the DNS cost calls beside them.
"""What clusters that follow long lists of the DNS cost calls beside them.

  ninja -C build/release sluiced bench_peers
  python3 tests/bench/dns_cost.py --build build/release [--clusters 10] [--names 1000] [--ttl 1] [--seconds 20] [--rate 2000]

Starts a DNS server with one service a cluster, of which each has that many targets (SRV) with an address each, all good for
`ttl` seconds; a backend, and sluiced in front of it with another cluster for the calls. Loads it at a fixed rate, in turn
without further clusters, with those lists in the configuration, and with clusters that follow them, and prints for each run:
percentiles of the calls' time, the daemon's share of a core, questions a second. Only on a machine without other work: the
daemon's share of a core must be far below what it could have.
"""
import argparse
import json
import os
import re
import selectors
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

RUNS = 3
WAIT = 120
A, SRV = 1, 33


def name(text):
    return b"".join(bytes([len(label)]) + label.encode() for label in text.split(".")) + b"\0"


def record(kind, ttl, data):
    return b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, ttl, len(data)) + data


class DnsServer:
    """UDP and TCP on one port of 127.0.0.1, in a process of its own at the lowest priority; answers are made beforehand."""

    def __init__(self, options):
        self.answers = {}
        for cluster in range(options.clusters):
            targets = [f"h{i}.c{cluster}.test" for i in range(options.names)]
            self.answers[name(f"c{cluster}.test"), SRV] = [
                record(SRV, options.ttl, struct.pack(">HHH", 0, 1, 1) + name(target)) for target in targets]
            for i, target in enumerate(targets):
                self.answers[name(target), A] = [record(A, options.ttl, socket.inet_aton(address(cluster, i)))]
        self.known = {owner for owner, _ in self.answers}
        self.port = 0
        while not self.listens():  # another process may have that port of TCP
            pass
        told, tell = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.nice(19)
            self.run(tell)
        os.close(tell)
        self.asked = 0
        threading.Thread(target=self.count, args=(told,), daemon=True).start()

    def listens(self):
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        self.port = self.udp.getsockname()[1]
        self.tcp = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            self.tcp.bind(("127.0.0.1", self.port))
        except OSError:
            return False
        self.tcp.listen(64)
        return True

    def count(self, told):
        while got := os.read(told, 65536):
            self.asked += len(got)

    def answer(self, question, room):
        end = question.index(b"\0", 12) + 1
        kind = struct.unpack(">H", question[end:end + 2])[0]
        records = self.answers.get((question[12:end], kind), [])
        code = 0 if question[12:end] in self.known else 3
        text = b"".join(records)
        fits = len(text) + end + 4 <= room
        flags = 0x8180 | code | (0 if fits else 0x200)
        return (question[:2] + struct.pack(">HHHHH", flags, 1, len(records) if fits else 0, 0, 0) + question[12:end + 4] +
                (text if fits else b""))

    def run(self, tell):
        events = selectors.DefaultSelector()
        for listening in (self.udp, self.tcp):
            events.register(listening, selectors.EVENT_READ)
        while True:
            for key, _ in events.select():
                if key.fileobj is self.udp:
                    question, sender = self.udp.recvfrom(4096)
                    self.udp.sendto(self.answer(question, 1232), sender)
                    os.write(tell, b".")
                elif key.fileobj is self.tcp:
                    events.register(self.tcp.accept()[0], selectors.EVENT_READ)
                else:
                    try:
                        question = key.fileobj.recv(4096)  # one small question: it comes whole
                    except ConnectionResetError:
                        question = b""
                    if len(question) < 14:
                        events.unregister(key.fileobj)
                        key.fileobj.close()
                        continue
                    answer = self.answer(question[2:], 65535)
                    key.fileobj.sendall(struct.pack(">H", len(answer)) + answer)
                    os.write(tell, b".")


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(what, holds):
    end = time.monotonic() + WAIT
    while not holds():
        if time.monotonic() > end:
            sys.exit(f"{what}: not within {WAIT} s")
        time.sleep(0.1)


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def address(cluster, i):
    return f"10.{cluster}.{i // 250}.{i % 250 + 1}"


# The clusters that no call goes to.
def others(options, server, kind):
    text = ""
    for i in range(0 if kind == "none" else options.clusters):
        listed = ", ".join(f"'{address(i, place)}:1'" for place in range(options.names))
        followed = f"{{dns: {{name: c{i}.test, records: srv, servers: ['127.0.0.1:{server.port}']}}}}"
        text += f"  - name: c{i}\n    ring_points: 20\n    " + (f"endpoints: [{listed}]\n" if kind == "listed" else f"discovery: {followed}\n")
    return text


# Percentiles of a run's calls, and what it took.
def measure(options, server, kind, folder, backend):
    port = free_port()
    clusters = options.clusters if kind == "followed" else 0
    with open(f"{folder}/sluice.yaml", "w", encoding="utf-8") as file:
        file.write(f"listeners: [{{address: '127.0.0.1:{port}'}}]\nadmin: {{grpc: 'unix:{folder}/admin.sock'}}\nroutes: [{{cluster: calls}}]\n"
                   f"clusters:\n  - name: calls\n    endpoints: ['127.0.0.1:{backend}']\n{others(options, server, kind)}")
    ctl = [f"{options.build}/bin/sluicectl", "--address", f"unix:{folder}/admin.sock", "clusters"]
    with open(f"{folder}/log", "wb") as log:
        daemon = subprocess.Popen([f"{options.build}/bin/sluiced", "-c", f"{folder}/sluice.yaml"], stderr=log, stdout=log)
    try:
        wait_for("sluiced listens", lambda: listens(port))
        wait_for("each cluster has its list", lambda: len(re.findall(
            rf" {options.names} +{options.names}  dns:", subprocess.run(ctl, capture_output=True, text=True, check=False).stdout)) >= clusters)
        cpu, asked, begin = cpu_seconds(daemon.pid), server.asked, time.monotonic()
        load = subprocess.run([f"{options.build}/bin/peers/load_client", "--connect", f"127.0.0.1:{port}", "-n", str(options.rate * options.seconds),
                               "-c", "4", "-m", "100", "--rate", str(options.rate)], capture_output=True, text=True, check=False)
        took = time.monotonic() - begin
        if "{" not in load.stdout:
            sys.exit(f"the load tool: {load.stdout}{load.stderr}")
        result = json.loads(load.stdout[load.stdout.index("{"):])
        return result, 100 * (cpu_seconds(daemon.pid) - cpu) / took, (server.asked - asked) / took
    finally:
        daemon.terminate()
        daemon.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    for option, value in (("clusters", 10), ("names", 1000), ("ttl", 1), ("seconds", 20), ("rate", 2000)):
        parser.add_argument(f"--{option}", type=int, default=value)
    options = parser.parse_args()
    server = DnsServer(options)
    backend_port = free_port()
    backend = subprocess.Popen([f"{options.build}/bin/peers/backend", "--listen", f"127.0.0.1:{backend_port}"], stderr=subprocess.DEVNULL)
    try:
        wait_for("the backend listens", lambda: listens(backend_port))
        for _ in range(RUNS):
            for kind in ("none", "listed", "followed"):
                with tempfile.TemporaryDirectory(prefix="sluice.") as folder:
                    result, cpu, questions = measure(options, server, kind, folder, backend_port)
                print(f"{kind}: {json.dumps(result)}; {cpu:.1f}% of a core, {questions:.0f} questions a second", flush=True)
    finally:
        backend.kill()
        backend.wait()
        os.kill(server.pid, 9)
        os.waitpid(server.pid, 0)


if __name__ == "__main__":
    main()
