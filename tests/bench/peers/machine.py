# Processes and what they use: CPU by thread from the scheduler's own accounts, how busy the rest of the machine is, and the end of what was started.
import contextlib
import fcntl
import os
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")
KERNEL_THREAD = 0x200000  # PF_KTHREAD in /proc/PID/stat


def descendants(pid):
    """The process and all below it."""
    children = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    out, todo = [], [pid]
    while todo:
        process = todo.pop()
        out.append(process)
        todo += children.get(process, [])
    return out


def cpu(pids):
    """ns on CPU by thread (schedstat), user and system ticks (stat), context switches."""
    threads, user, system, switches = {}, 0, 0, 0
    for pid in pids:
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            user, system = user + int(fields[11]), system + int(fields[12])
            for task in Path(f"/proc/{pid}/task").iterdir():
                with contextlib.suppress(OSError):
                    threads[int(task.name)] = int((task / "schedstat").read_text().split()[0])
                    switches += sum(int(n) for n in re.findall(r"voluntary_ctxt_switches:\s+(\d+)", (task / "status").read_text()))
    return dict(threads=threads, user=user, system=system, switches=switches)


def cpu_delta(before, after):
    threads = {t: (ns - before["threads"].get(t, 0)) / 1e3 for t, ns in after["threads"].items()}
    total = sum(threads.values())
    return dict(us=total, user_us=(after["user"] - before["user"]) * 1e6 / TICK,
                system_us=(after["system"] - before["system"]) * 1e6 / TICK,
                switches=after["switches"] - before["switches"], busiest=max(threads.values(), default=0) / (total or 1))


def totals():
    """us of user, system and interrupt time of the whole machine, and stolen time by core."""
    out = dict(steal={})
    for line in Path("/proc/stat").read_text().splitlines():
        fields = line.split()
        if fields[0] == "cpu":  # fields[2], nice time, is our own spinner's
            out["busy"] = sum(int(fields[i]) for i in (1, 3, 6, 7)) * 1e6 / TICK
        elif fields[0].startswith("cpu"):
            out["steal"][fields[0][3:]] = int(fields[8]) * 1e6 / TICK
    return out


def others(ours):
    """us of CPU that user processes other than `ours` have used so far."""
    total = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) not in ours:
            with contextlib.suppress(OSError, ValueError, IndexError):
                if int((entry / "stat").read_text().rsplit(")", 1)[1].split()[6]) & KERNEL_THREAD:
                    continue
                total += sum(int((t / "schedstat").read_text().split()[0]) for t in (entry / "task").iterdir()) / 1e3
    return total


def wait_calm(seconds):
    """Waits until nothing else uses the machine, `seconds` at most. Returns whether it became calm."""
    end = time.time() + seconds
    while True:
        before, start = totals(), time.time()
        time.sleep(0.25)
        if (totals()["busy"] - before["busy"]) / ((time.time() - start) * 1e6) < 0.09:
            return True
        if time.time() > end:
            return False


def wait_port(port, process, seconds=10):
    end = time.time() + seconds
    while time.time() < end:
        if process.poll() is not None:
            raise RuntimeError(f"exited with {process.returncode} before it listened")
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 0.2).close()
            return
        time.sleep(0.02)
    raise RuntimeError(f"does not listen on port {port} after {seconds} s")


def stop(process):
    """SIGTERM, and SIGKILL after 3 s: to the process and its descendants, which this program started."""
    if process is None or process.poll() is not None:
        return
    pids = descendants(process.pid)
    process.terminate()
    try:
        process.wait(3)
    except subprocess.TimeoutExpired:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()


def pinned(cores, command):
    return ["taskset", "-c", str(cores)] + [str(word) for word in command]


@contextlib.contextmanager
def locked(path):
    """Holds the lock file `path`, if there is one, shared with whatever else measures on this machine."""
    if not path:
        yield
        return
    with open(path, "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class Turns:
    """The lock file for a few minutes at a time, so that others get their turn; and a quiet machine at each turn's begin."""
    SECONDS = 150

    def __init__(self, path, calm):
        self.path, self.calm, self.file, self.since = path, calm, None, 0.0

    def take(self):
        if self.file and time.time() - self.since > self.SECONDS:
            self.release()
            time.sleep(1)
        if self.path and not self.file:
            self.file = open(self.path, "a")
            fcntl.flock(self.file, fcntl.LOCK_EX)
            self.since = time.time()
        wait_calm(self.calm)

    def release(self):
        if self.file:
            self.file.close()
            self.file = None
