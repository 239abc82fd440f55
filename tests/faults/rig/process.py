# Process: a child of the test with its output in a file. Backend: sluice-echo. Daemon: sluiced.
import os
import re
import resource
import signal
import subprocess

from rig.wait import LONG_WAIT, eventually

TICKS = os.sysconf("SC_CLK_TCK")


class Process:
    # `wrapper`: a command that runs the command (unshare).
    def __init__(self, command, output, wrapper=(), environment=None, before=None):
        self.command, self.output, self.wrapper, self.environment, self.before = command, output, wrapper, environment, before
        self.process = None

    def start(self):
        with open(self.output, "wb") as file:
            self.process = subprocess.Popen(
                [*self.wrapper, *self.command], stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
                env={**os.environ, **(self.environment or {})}, preexec_fn=self.before)

    @property
    def pid(self):
        return self.process.pid

    def running(self):
        return self.process is not None and self.process.poll() is None

    def text(self):
        with open(self.output, encoding="utf-8", errors="replace") as file:
            return file.read()

    # The match of `pattern` in the output, as soon as it is there.
    def said(self, pattern):
        def look():
            match = re.search(pattern, self.text())
            if match is None and not self.running():
                raise AssertionError(f"{self.command[0]} ended with {self.process.returncode}: {self.text()}")
            return match
        return eventually(look, f"{pattern!r} in the output of {self.command[0]}")

    def count(self, pattern):
        return len(re.findall(pattern, self.text()))

    def signal(self, number):
        os.kill(self.pid, number)

    # kill -9. When this returns the kernel has closed all that it had open.
    def kill(self):
        self.process.kill()
        self.process.wait(LONG_WAIT)

    # SIGSTOP. When this returns no thread of it runs any more.
    def freeze(self):
        self.signal(signal.SIGSTOP)
        eventually(lambda: all(self._state(task) == "T" for task in os.listdir(f"/proc/{self.pid}/task")), "it is stopped")

    def thaw(self):
        self.signal(signal.SIGCONT)

    def _state(self, task):
        with open(f"/proc/{self.pid}/task/{task}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0]

    # Seconds of CPU time since the start.
    def cpu(self):
        with open(f"/proc/{self.pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    # Times that its threads went to sleep, which is how often they woke.
    def sleeps(self):
        count = 0
        for task in os.listdir(f"/proc/{self.pid}/task"):
            with open(f"/proc/{self.pid}/task/{task}/status", encoding="ascii") as file:
                count += int(re.search(r"\nvoluntary_ctxt_switches:\s+(\d+)", file.read()).group(1))
        return count

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    # Bytes of memory that are resident.
    def resident(self):
        with open(f"/proc/{self.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize()

    def limit(self, which, soft):
        hard = resource.prlimit(self.pid, which)[1]
        resource.prlimit(self.pid, which, (soft if hard == resource.RLIM_INFINITY or soft == resource.RLIM_INFINITY
                                           else min(soft, hard), hard))

    # SIGTERM; the exit code.
    def stop(self):
        self.thaw()
        self.signal(signal.SIGTERM)
        return self.process.wait(LONG_WAIT)


class Backend(Process):
    # `host` is an address of 127/8 that no other process of the test binds: its port stays free while it is dead.
    def __init__(self, bin_folder, name, host, output):
        super().__init__([f"{bin_folder}/sluice-echo", "server", "--name", name, "--grace", "0s", "--listen"], output)
        self.name, self.address = name, f"{host}:0"

    # The second start is at the first one's address.
    def start(self):
        self.command = [*self.command[:7], self.address]
        super().start()
        self.address = self.said(r"listening on (\S+)").group(1)


class Daemon(Process):
    # `log`: where its configuration says that its log goes; else its standard error.
    def __init__(self, bin_folder, config, output, log=None, **options):
        super().__init__([f"{bin_folder}/sluiced", "-c", config], output, **options)
        self.log = log

    def text(self):
        text = super().text()
        if self.log is not None and os.path.exists(self.log):
            with open(self.log, encoding="utf-8") as file:
                text += file.read()
        return text

    def start(self):
        super().start()
        self.said(r"sluiced \S+ is ready")

    # Where it listens, with the port that the kernel chose.
    def address(self):
        return self.said(r"listening on (\S+:\d+)\s").group(1)
