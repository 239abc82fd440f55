# How each proxy is started, and how its process is replaced by a new one. To add a proxy: a class here, a template in conf/.
import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

from processes import descendants_of, end_all, listens, parents, reap, wait_accepted_by_new

CONF = Path(__file__).resolve().parent / "conf"
START_SECONDS = 20  # until it serves


class Proxy:
    """One proxy. A subclass says how it is started (command) and what makes it begin anew (trigger)."""

    name = title = program = conf = None
    limits = False  # whether it can make calls wait that a backend is too busy for

    def __init__(self, options, run, port, backends):
        self.options, self.run, self.port, self.backends = options, run, port, backends
        self.started, self.baseline = [], 0
        self.serving = None  # the process that accepted a connection last
        found = shutil.which(self.program, path=f"{options.build}/bin:{os.environ['PATH']}:/usr/sbin")
        if found is None:
            raise RuntimeError(f"{self.name}: {self.program} is missing (deploy/install-deps.sh peers, or a build of Sluice)")
        self.program = os.path.realpath(found)

    def names(self):
        out = dict(LISTEN=f"127.0.0.1:{self.port}", LISTEN_COMMA=f"127.0.0.1,{self.port}", WORKERS=self.options.workers,
                   LIMIT=self.options.limit, RUN=self.run, ADMIN=f"{self.run}/admin.sock")
        for number, port in enumerate(self.backends, 1):
            out |= {f"UP{number}": f"127.0.0.1:{port}", f"UP{number}_COMMA": f"127.0.0.1,{port}"}
        return out

    def render(self, **more):
        names = self.names() | more
        path = self.run / self.conf
        path.write_text(re.sub(r"@([A-Z0-9_]+)@", lambda m: str(names[m[1]]), (CONF / self.conf).read_text()))
        return path

    def command(self):
        raise NotImplementedError

    def trigger(self, before):
        """Starts the replacement; the caller waits until a process that is not in `before` accepts."""
        raise NotImplementedError

    def ready_for_next(self):
        """Whether another restart would be obeyed now."""
        return True

    def spawn(self, command):
        with open(self.run / f"{self.name}.log", "a", encoding="utf-8") as log:
            self.started.append(subprocess.Popen([str(word) for word in command], cwd=self.run, stdin=subprocess.DEVNULL, stdout=log,
                                                 stderr=log))
        return self.started[-1]

    def start(self):
        self.spawn(self.command())
        self.serving = wait_accepted_by_new(self.port, self.pids, set(), START_SECONDS)
        # Those that fork go on for a moment.
        seen, since = set(), time.monotonic()
        while time.monotonic() - since < 1:
            if self.pids() != seen:
                seen, since = self.pids(), time.monotonic()
            time.sleep(0.05)
        self.baseline = len(seen)

    def restart(self):
        """Seconds until a new process accepted a connection."""
        before, begun = self.pids(), time.monotonic()
        self.trigger(before)
        self.serving = wait_accepted_by_new(self.port, self.pids, before, START_SECONDS)
        return time.monotonic() - begun

    def pids(self):
        reap(self.own())
        return descendants_of(self.program)

    def own(self):
        for process in self.started:
            process.poll()
        return {process.pid for process in self.started}

    def old(self):
        """How many processes there are more than after the start."""
        return max(0, len(self.pids()) - self.baseline)

    def stop(self):
        end_all(self.pids, self.own())

    def log(self):
        path = self.run / f"{self.name}.log"
        return path.read_text(errors="replace")[-3000:] if path.exists() else ""


class Sluiced(Proxy):
    name, title, program, conf, limits = "sluiced", "Sluice, sluicectl upgrade", "sluiced", "sluice.yaml", True

    def command(self):
        return [self.program, "-c", self.render()]

    def trigger(self, before):
        # It exits 0 when the new process serves.
        control = os.path.join(os.path.dirname(self.program), "sluicectl")
        subprocess.run([control, "--address", f"unix:{self.names()['ADMIN']}", "upgrade"], check=True, timeout=START_SECONDS,
                       capture_output=True, text=True)


class SluicedSignal(Sluiced):
    """The same by a signal, which says nothing of the outcome."""

    name, title = "sluiced-usr2", "Sluice, SIGUSR2"

    def trigger(self, before):
        os.kill(self.serving, signal.SIGUSR2)


class SluicedPlain(Sluiced):
    """Stopped and started: the new process begins as soon as the old one has closed its listening sockets, and drains beside it."""

    name, title = "sluiced-plain", "Sluice, SIGTERM and start"

    def command(self):
        return [self.program, "-c", self.render(ADMIN=self.run / f"admin-{len(self.started)}.sock")]

    def trigger(self, before):
        self.started[-1].send_signal(signal.SIGTERM)
        while listens(self.port):
            time.sleep(0.001)
        self.spawn(self.command())


class SluicedService(SluicedPlain):
    """As a service manager restarts: the new process begins when the old one has ended, whose calls have 5 s for that."""

    name, title = "sluiced-service", "Sluice, SIGTERM, wait for its end, start"

    def render(self, **more):
        path = super().render(**more)
        path.write_text(path.read_text().replace("drain_timeout: 5m", "drain_timeout: 5s"))
        return path

    def trigger(self, before):
        self.started[-1].send_signal(signal.SIGTERM)
        self.started[-1].wait(START_SECONDS)
        self.spawn(self.command())


class SluicedStill(Sluiced):
    """The control: nothing is restarted. What this row shows is the machine's and the clients' own noise."""

    name, title = "sluiced-still", "Sluice, no restart (control)"

    def trigger(self, before):
        pass

    def restart(self):
        return 0.0


class HAProxy(Proxy):
    """Master-worker: at SIGUSR2 the master executes itself anew and starts a worker, which takes the listening sockets over from the old
    one and tells it to finish (-x, -sf)."""

    name, title, program, conf, limits = "haproxy", "HAProxy -W, SIGUSR2", "haproxy", "haproxy.cfg", True

    def command(self):
        return [self.program, "-W", "-db", "-S", f"{self.run}/master.sock", "-f", self.render()]

    def trigger(self, before):
        self.started[0].send_signal(signal.SIGUSR2)


class HAProxyNew(HAProxy):
    """Without a master: a new process gets the listening sockets from the old one's stats socket, which it then tells to finish."""

    name, title = "haproxy-sf", "HAProxy, new process -x -sf"

    def command(self):
        return [self.program, "-db", "-f", self.render()]

    def trigger(self, before):
        self.spawn([*self.command(), "-x", f"{self.run}/stats.sock", "-sf", *before])


class Nginx(Proxy):
    """USR2: the old master executes the new program, which inherits the sockets; then QUIT ends the old one when its calls are over. As
    long as it lives the new master obeys no USR2: so the next restart waits for its end."""

    name, title, program, conf = "nginx", "nginx, USR2 and QUIT", "nginx", "nginx.conf"

    def command(self):
        return [self.program, "-p", self.run, "-c", self.render()]

    def master(self):
        with contextlib.suppress(OSError, ValueError):
            return int((self.run / "nginx.pid").read_text())
        return None

    def trigger(self, before):
        old = self.master()
        os.kill(old, signal.SIGUSR2)
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            new = self.master()  # none while the old one's file is renamed
            if new not in (None, old) and any(parent == new for parent, _ in parents().values()):
                break
            time.sleep(0.002)
        os.kill(old, signal.SIGQUIT)

    def ready_for_next(self):
        # Until then the new master's parent is the old one; what has lost its parent is this program's (adopt_orphans).
        return parents().get(self.master(), (None, False))[0] == os.getpid()


class NginxReload(Nginx):
    """HUP: the master stays, its workers are replaced."""

    name, title = "nginx-hup", "nginx, HUP (workers only)"

    def trigger(self, before):
        os.kill(self.master(), signal.SIGHUP)

    def ready_for_next(self):
        return True


class Nghttpx(Proxy):
    """USR2: the new program inherits the sockets, and sends QUIT to the old one when it serves."""

    name, title, program, conf = "nghttpx", "nghttpx, USR2 and QUIT", "nghttpx", "nghttpx.conf"

    def command(self):
        return [self.program, f"--conf={self.render()}"]

    def trigger(self, before):
        os.kill(int((self.run / "nghttpx.pid").read_text()), signal.SIGUSR2)


PROXIES = {c.name: c for c in (Sluiced, SluicedSignal, SluicedPlain, SluicedService, SluicedStill, HAProxy, HAProxyNew, Nginx, NginxReload,
                               Nghttpx)}
