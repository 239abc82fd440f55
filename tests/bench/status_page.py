# What the status page costs at 1000 endpoints, and whether probes get their answer while others hold or flood the HTTP port.
#   status_page.py [--bin DIR] [--seconds N] [--connections N] [--parts LIST]
# Prints sizes, the processor time of a page, p99 of calls with and without pages being looked at, and the times of /healthz beside
# 1000 connections of each kind; ends with 1 where a bound does not hold.
import argparse
import multiprocessing
import os
import re
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "faults"))

from rig.process import Backend, Daemon  # pylint: disable=wrong-import-position

PAGE_BYTES, PAGE_CPU_MS, HEALTHZ_MS = 100_000, 5, 100


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder, self.failed, self.processes = options, folder, [], []

    def check(self, what, value, most, unit):
        print(f"{what}: {value:.2f} {unit}, at most {most}" + ("" if value <= most else "   NOT SO"))
        if value > most:
            self.failed.append(what)

    # A daemon of `clusters` clusters with `each` endpoints, of which the first is the backend's.
    def daemon(self, clusters, each):
        name = f"{self.folder}/{clusters}.yaml"
        if not self.processes:
            backend = Backend(self.options.bin, "echo", "127.0.0.1", f"{self.folder}/echo.out")
            backend.start()
            self.processes.append(backend)
        with open(name, "w", encoding="utf-8") as file:
            file.write(f'listeners: [{{address: "127.0.0.1:0"}}]\nworkers: 1\n'
                       f'admin: {{grpc: "unix:{self.folder}/{clusters}.sock", http: "127.0.0.1:0"}}\nclusters:\n')
            for cluster in range(clusters):
                file.write(f"  - name: cluster-{cluster}\n    endpoints:\n")
                for endpoint in range(each):
                    here = self.processes[0].address if endpoint == 0 and cluster == 0 else f"127.1.{cluster % 250}.{endpoint % 250}:{10000 + endpoint}"
                    file.write(f'      - {{name: endpoint-{cluster}-{endpoint}, address: "{here}"}}\n')
            file.write("routes: [{cluster: cluster-0, hash_by: {metadata: x-key}}]\n")
        daemon = Daemon(self.options.bin, name, f"{self.folder}/{clusters}.out")
        daemon.start()
        self.processes.append(daemon)
        self.url = daemon.said(r"status page and metrics on (http://\S+/)").group(1)
        return daemon

    def get(self, path, timeout=30):
        with urllib.request.urlopen(self.url + path, timeout=timeout) as answer:
            return answer.read()

    def pages(self, clusters, each):
        daemon = self.daemon(clusters, each)
        for path in ("", "cluster?name=cluster-0"):
            self.get(path)
            count, before, begun = 100, daemon.cpu(), time.monotonic()
            for _ in range(count):
                size = len(self.get(path))
            spent, took = daemon.cpu() - before, time.monotonic() - begun
            before = daemon.cpu()
            time.sleep(took)  # what it spends without being asked
            spent -= daemon.cpu() - before
            label = f"{clusters} clusters of {each}, /{path}"
            self.check(f"{label}, size", size / 1000, PAGE_BYTES / 1000, "KB")
            self.check(f"{label}, processor", spent / count * 1000, PAGE_CPU_MS, "ms")
        daemon.stop()

    # p99 of calls that are made all the time, without and with four readers of the largest pages, one after the other three times.
    def calls(self):
        daemon = self.daemon(1, 1000)
        target = daemon.address()
        shut = threading.Event()
        found = {False: [], True: []}
        self.drain_dead()
        for round_ in range(6):
            looked_at = round_ % 2 == 1
            shut.clear()
            readers = [threading.Thread(target=self.read_pages, args=(shut,), daemon=True) for _ in range(4 if looked_at else 0)]
            for reader in readers:
                reader.start()
            before = self.buckets()
            subprocess.run([f"{self.options.bin}/sluice-echo", "client", "--target", target, "--calls", "0", "--rate", "500",
                            "--duration", f"{round(self.options.seconds * 1000)}ms", "--keys", "1", "--allow-failures"],
                           check=True, stdout=subprocess.DEVNULL)
            found[looked_at].append(self.quantile(before, self.buckets(), 0.99))
            shut.set()
            for reader in readers:
                reader.join()
        for looked_at, values in found.items():
            print(f"p99 of calls {'with four readers' if looked_at else 'without a reader'}: "
                  + ", ".join(f"{v * 1e3:.2f}" for v in values) + " ms (upper bounds of buckets)")
        daemon.stop()

    # All calls to the one endpoint that lives.
    def drain_dead(self):
        subprocess.run([f"{self.options.bin}/sluicectl", "--address", f"unix:{self.folder}/1.sock", "replace", "cluster-0",
                        f"endpoint-0-0={self.processes[0].address}"], check=True, stdout=subprocess.DEVNULL)
        listed = [f"dead-{i}=127.1.1.{i % 250}:{10000 + i}@0.01" for i in range(999)]
        subprocess.run([f"{self.options.bin}/sluicectl", "--address", f"unix:{self.folder}/1.sock", "add", "cluster-0", *listed],
                       check=True, stdout=subprocess.DEVNULL)

    def read_pages(self, shut):
        while not shut.is_set():
            self.get("")
            self.get("cluster?name=cluster-0")
            shut.wait(2)  # as the page's script does

    def buckets(self):
        text = self.get("metrics").decode()
        return {float(bound.replace("+Inf", "inf")): float(count) for bound, count in
                re.findall(r'^sluice_call_duration_seconds_bucket\{[^}]*le="([^"]+)"\} (\S+)', text, re.M)}

    @staticmethod
    def quantile(before, after, share):
        more = sorted((bound, count - before.get(bound, 0)) for bound, count in after.items())
        return next((bound for bound, count in more if count >= share * more[-1][1]), float("inf")) if more else float("nan")

    # Times of /healthz, each on a connection of its own, while `hold` keeps the port busy.
    def probe(self, kind, hold):
        # In a process of its own: the probe shares no interpreter with it.
        shut = multiprocessing.Event()
        holder = multiprocessing.Process(target=hold, args=(shut,), daemon=True)
        holder.start()
        took, lost, why = [], 0, None
        end = time.monotonic() + self.options.seconds
        while time.monotonic() < end:
            begun = time.monotonic()
            try:
                assert self.get("healthz", timeout=5) == b"alive\n"
                took.append((time.monotonic() - begun) * 1e3)
            except OSError as error:
                lost += 1
                why = error
            time.sleep(0.02)
        shut.set()
        holder.join()
        took.sort()
        print(f"/healthz beside {kind}: {len(took)} answers, median {took[len(took) // 2] if took else 0:.2f} ms, lost {lost}")
        if took:
            self.check(f"/healthz beside {kind}, the slowest", took[-1], HEALTHZ_MS, "ms")
        if lost:
            print(f"  the last one lost: {why}")
            self.failed.append(f"/healthz beside {kind}: {lost} lost")

    def connect(self, text=b""):
        host, port = re.match(r"http://([^:/]+):(\d+)/", self.url).groups()
        peer = socket.socket()
        peer.settimeout(5)
        try:
            peer.connect((host, int(port)))
            peer.setblocking(False)
            if text:
                peer.send(text)
        except OSError:
            pass
        return peer

    # Holds as many connections as are asked for, each made again when the port ends it.
    def hold(self, text, shut, drip=b""):
        peers = [self.connect(text) for _ in range(self.options.connections)]
        while not shut.is_set():
            for i, peer in enumerate(peers):
                if shut.is_set():
                    break
                try:
                    if drip:
                        peer.send(drip)
                    gone = peer.recv(1 << 16) == b""
                except BlockingIOError:
                    gone = False
                except OSError:
                    gone = True
                if gone:
                    peer.close()
                    peers[i] = self.connect(text)
            shut.wait(0.05)
        for peer in peers:
            peer.close()

    def probes(self):
        daemon = self.daemon(1000, 1)
        ask = "GET {} HTTP/1.1\r\nHost: localhost\r\n\r\n".format
        page, metrics = ask("/").encode(), ask("/metrics").encode()
        self.probe("nothing else", lambda shut: shut.wait())
        self.probe("idle connections", lambda shut: self.hold(b"", shut))
        self.probe("requests that drip", lambda shut: self.hold(b"GET / HTTP/1.1\r\nX: ", shut, b"x"))
        self.probe("clients that ask for pages", lambda shut: self.hold(page, shut, page))
        self.probe("clients that ask for much and read nothing", lambda shut: self.hold_deaf(metrics * 50, shut))
        daemon.stop()

    def hold_deaf(self, text, shut):
        peers = [self.connect(text) for _ in range(self.options.connections)]
        while not shut.is_set():
            peers.pop(0).close()
            peers.append(self.connect(text))
            shut.wait(0.01)
        for peer in peers:
            peer.close()

    def end(self):
        for process in reversed(self.processes):
            if process.running():
                process.kill()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default=os.path.join(HERE, "..", "..", "build", "release", "bin"))
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--parts", default="pages,probes,calls")
    options = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 3 * options.connections)), hard))
    with tempfile.TemporaryDirectory(prefix="sluice.") as folder:
        bench = Bench(options, folder)
        try:
            if "pages" in options.parts:
                bench.pages(1, 1000)
                bench.pages(1000, 1)
            if "probes" in options.parts:
                bench.probes()
            if "calls" in options.parts:
                bench.calls()
        finally:
            bench.end()
    print("all bounds hold" if not bench.failed else f"NOT SO: {bench.failed}")
    sys.exit(1 if bench.failed else 0)


if __name__ == "__main__":
    main()
