# Makes the pictures of docs/images: the status page of a daemon with traffic, of which some fails.
#   screenshots.py [--bin DIR] [--to DIR] [--minutes N]     default: build/release/bin, docs/images, 6 minutes of traffic
import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "faults"))

from chromium import Browser  # pylint: disable=wrong-import-position
from rig.process import Backend, Daemon, Process  # pylint: disable=wrong-import-position
from rig.wait import LONG_WAIT  # pylint: disable=wrong-import-position

SIZES = {"users": 3, "catalog": 4, "search": 2}
BYTES_MAX = 150_000


class Show:
    def __init__(self, options, folder):
        self.bin, self.to, self.folder, self.processes = options.bin, options.to, folder, []
        self.seconds = options.minutes * 60
        self.backends = {}
        self.number = 0

    def start(self, process):
        process.start()
        self.processes.append(process)
        return process

    def output(self):
        self.number += 1
        return f"{self.folder}/{self.number}.out"

    def backend(self, name):
        host = f"127.{10 + os.getpid() % 200}.{os.getpid() // 200 % 250}.{self.number + 1}"
        self.backends[name] = self.start(Backend(self.bin, name, host, self.output()))

    def load(self, *flags):
        return self.start(Process([f"{self.bin}/sluice-echo", "client", "--target", self.target, "--calls", "0",
                                   "--allow-failures", *flags], self.output()))

    def ctl(self, *arguments):
        subprocess.run([f"{self.bin}/sluicectl", "--address", f"unix:{self.folder}/admin.sock", *arguments],
                       check=True, timeout=LONG_WAIT, stdout=subprocess.DEVNULL)

    def write(self, max_calls=200):
        with open(f"{self.folder}/sluice.yaml", "w", encoding="utf-8") as file:
            file.write(f'listeners:\n  - {{address: 127.0.0.1:0}}\nadmin: {{grpc: "unix:{self.folder}/admin.sock", '
                       f"http: 127.0.0.1:0}}\nworkers: 2\nconcurrency: {{max: {max_calls}}}\ncache: {{capacity: 64MiB}}\nclusters:\n")
            for cluster, count in SIZES.items():
                listed = "endpoints:\n" + "".join(
                    f'      - {{name: {name}, address: "{self.backends[name].address}"}}\n'
                    for name in (f"{cluster}-{i + 1}" for i in range(count)))
                if cluster == "search":
                    with open(f"{self.folder}/search.yaml", "w", encoding="utf-8") as search:
                        search.write(listed.replace("      -", "  -"))
                    listed = "discovery: {file: {path: search.yaml}}\n"
                file.write(f"  - name: {cluster}\n    {listed}")
                if cluster == "catalog":
                    file.write("    rate_limit: {rate: 150, burst: 20, queue: 50}\n")
            file.write("routes:\n")
            for cluster, method in (("catalog", "ServerStream"), ("search", "BidiStream"), ("users", "")):
                service = f"service: sluice.echo.v1.Echo, method: {method}, " if method else ""
                file.write(f"  - {{name: {cluster}, {service}cluster: {cluster}, hash_by: {{metadata: x-key}}}}\n")

    def run(self):
        for cluster, count in SIZES.items():
            for i in range(count):
                self.backend(f"{cluster}-{i + 1}")
        self.write()
        daemon = self.start(Daemon(self.bin, "sluice.yaml", self.output(), wrapper=["env", "-C", self.folder]))
        self.target = daemon.address()
        self.url = daemon.said(r"status page and metrics on (http://\S+/)").group(1)
        end = time.monotonic() + self.seconds
        self.load("--rate", "240", "--keys", "500")
        self.load("--kind", "server", "--rate", "170", "--keys", "50", "--messages", "2")
        self.load("--kind", "bidi", "--rate", "40", "--timeout", "80ms", "--delay", "20ms")
        waves = threading.Thread(target=self.waves, args=(end,), daemon=True)
        waves.start()
        time.sleep(self.seconds * 0.5)
        self.backends["users-2"].freeze()
        time.sleep(self.seconds * 0.2)
        self.backends["users-2"].thaw()
        self.write(max_calls=400)
        self.ctl("reload")
        self.ctl("endpoint", "drain", "catalog", "catalog-4", "--over", "10m")
        time.sleep(max(0, end - 25 - time.monotonic()))
        self.backends["users-3"].kill()
        time.sleep(max(0, end - time.monotonic()))
        waves.join()
        self.shoot()

    # Load that comes and goes, so that the pictures of it are no plain bars.
    def waves(self, end):
        rate = 60
        while time.monotonic() < end - 15:
            client = self.load("--rate", str(rate), "--duration", "25s", "--keys", "300")
            client.process.wait(LONG_WAIT * 2)
            rate = rate * 7 % 410 + 20

    def shoot(self):
        browser = Browser()
        try:
            for name, path, scheme, height in (("status-page", "", "light", 820), ("status-page-dark", "", "dark", 560),
                                               ("status-page-cluster", "cluster?name=users", "light", 760)):
                page = browser.page(scheme=scheme)
                page.open(self.url + path)
                png = page.screenshot(height)
                assert len(png) < BYTES_MAX, f"{name} has {len(png)} bytes"
                with open(f"{self.to}/{name}.png", "wb") as file:
                    file.write(png)
                print(f"{self.to}/{name}.png: {len(png)} bytes")
        finally:
            browser.close()

    def end(self):
        for process in reversed(self.processes):
            if process.running():
                process.kill()


def main():
    root = os.path.join(HERE, "..", "..")
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", default=f"{root}/build/release/bin")
    parser.add_argument("--to", default=f"{root}/docs/images")
    parser.add_argument("--minutes", type=float, default=6)
    options = parser.parse_args()
    options.bin, options.to = os.path.abspath(options.bin), os.path.abspath(options.to)
    os.makedirs(options.to, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="sluice.") as folder:
        show = Show(options, folder)
        try:
            show.run()
        finally:
            show.end()


if __name__ == "__main__":
    main()
