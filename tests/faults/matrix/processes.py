# The processes of the matrix: a backend that is told to be sick, the client, certificates, and a network of the backend's own.
import array
import os
import select
import signal
import struct
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from rig.process import Process  # noqa: E402
from rig.wait import LONG_WAIT, eventually  # noqa: E402

SERVER_NAME = "matrix.test"  # in the backends' certificates
GRACE = 0.5  # seconds a backend may take to end its calls before a sick one takes its place


# One line of a child's standard output.
def line_of(process, what):
    ready, _, _ = select.select([process.stdout], [], [], LONG_WAIT)
    text = process.stdout.readline() if ready else ""
    if not text:
        raise RuntimeError(f"{what}: no answer; it ended with {process.poll()}")
    return text.strip()


class Backend(Process):
    # `host`: an address that no other process binds: its port stays free while the backend is dead. `wrapper`: as of Process.
    def __init__(self, programs, name, host, folder, service_ms, seed, flags=(), wrapper=()):
        self.name, self.address, self.executed = name, f"{host}:0", f"{folder}/{name}.executions"
        self.flags = ["--name", name, "--executions", self.executed, "--service-ms", str(service_ms), "--seed", str(seed), *flags]
        self.folder = folder
        super().__init__([f"{programs}/matrix_backend"], f"{folder}/{name}.out", wrapper=wrapper)
        self.program = self.command[0]

    # `flags` come behind the others and take their place. Each start but the first is at the first one's address.
    def start(self, *flags):
        self.command = [self.program, *self.flags, "--listen", self.address, *flags]
        with open(self.output, "ab") as log:
            self.process = subprocess.Popen([*self.wrapper, *self.command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                                            text=True, bufsize=1, cwd=self.folder)
        self.address = line_of(self.process, f"{self.command}: {self.text()}").removeprefix("listening ")

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        answer = line_of(self.process, line)
        if answer != "ok":
            raise RuntimeError(f"{self.name}: {line}: {answer}")

    def kill(self):
        super().kill()
        self._close()

    # SIGTERM.
    def terminate(self):
        self.signal(signal.SIGTERM)

    # Back when it has ended after terminate().
    def wait(self):
        self.process.wait(LONG_WAIT)
        self._close()

    def _close(self):
        self.process.stdin.close()
        self.process.stdout.close()

    # Ended in good order; another takes its place at the same address.
    def replace(self, *flags):
        self.terminate()
        self.wait()
        self.start(*flags)

    # The numbers of the calls that it executed, in this and former lives, each as often as it did.
    def executions(self):
        with open(self.executed, "rb") as file:
            count = struct.unpack("=Q", file.read(8))[0]
            numbers = array.array("I")
            numbers.frombytes(file.read(4 * count))
        return [number for number in numbers if number]


# A network namespace that one backend lives in, joined to ours by a pair of interfaces. Packets are dropped without a trace
# while both ends have a wrong hardware address of each other.
class Namespace:
    OURS, ITS, WRONG = "10.77.0.1", "10.77.0.2", "02:00:00:00:00:77"

    # RuntimeError where this program has no network of its own (run.py), or may not make another.
    def __init__(self):
        if os.environ.get("MATRIX_NAMESPACES") != "1":
            raise RuntimeError("this program has none of its own")
        self.holder = subprocess.Popen(["unshare", "-n", "cat"], stdin=subprocess.PIPE)
        self.wrapper = ["nsenter", "-t", str(self.holder.pid), "-n", "--"]
        ours = os.readlink("/proc/self/ns/net")
        try:
            eventually(lambda: self.holder.poll() is not None or os.readlink(f"/proc/{self.holder.pid}/ns/net") != ours,
                       "it has a namespace of its own")
            self._run("ip", "link", "add", "matrix0", "address", "02:00:00:00:00:01", "type", "veth", "peer", "name", "matrix1",
                      "address", "02:00:00:00:00:02", "netns", str(self.holder.pid))
            self._run("ip", "addr", "add", f"{self.OURS}/24", "dev", "matrix0")
            self._run("ip", "link", "set", "matrix0", "up")
            self._run(*self.wrapper, "ip", "addr", "add", f"{self.ITS}/24", "dev", "matrix1")
            self._run(*self.wrapper, "ip", "link", "set", "matrix1", "up")
            self.join()
        except RuntimeError:
            self.close()
            raise

    def join(self):
        self._neighbours("02:00:00:00:00:02", "02:00:00:00:00:01")

    def cut(self):
        self._neighbours(self.WRONG, self.WRONG)

    def _neighbours(self, its, ours):
        self._run("ip", "neigh", "replace", self.ITS, "lladdr", its, "dev", "matrix0", "nud", "permanent")
        self._run(*self.wrapper, "ip", "neigh", "replace", self.OURS, "lladdr", ours, "dev", "matrix1", "nud", "permanent")

    @staticmethod
    def _run(*command):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")

    def close(self):
        subprocess.run(["ip", "link", "del", "matrix0"], capture_output=True, check=False)
        self.holder.stdin.close()
        self.holder.wait(LONG_WAIT)


# Makes ca.pem, good.pem, expired.pem and key.pem in `folder`.
def make_certificates(folder):
    def openssl(*arguments):
        done = subprocess.run(["openssl", *arguments], cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"openssl {arguments[0]}: {done.stderr.strip()[-300:]}")
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "ca-key.pem", "-out", "ca.pem",
            "-days", "2", "-subj", "/CN=matrix CA")
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "key.pem", "-out", "request.pem",
            "-subj", f"/CN={SERVER_NAME}")
    Path(folder, "names").write_text(f"subjectAltName=DNS:{SERVER_NAME}\n", encoding="ascii")
    for name, days in (("good", "2"), ("expired", "-1")):
        openssl("x509", "-req", "-in", "request.pem", "-CA", "ca.pem", "-CAkey", "ca-key.pem", "-CAcreateserial", "-extfile", "names",
                "-days", days, "-out", f"{name}.pem")
