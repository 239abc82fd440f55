# The processes of a proxy, also those that it started itself; which of them accepts connections now; and their end.
import contextlib
import ctypes
import os
import signal
import socket
import time
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
# The preface of HTTP/2 and an empty SETTINGS frame: with TCP_DEFER_ACCEPT (nghttpx) a silent client is not accepted for a while.
HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])


def adopt_orphans():
    """What our descendants leave behind becomes our child instead of init's: a proxy whose parent has ended stays ours to end."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def parents():
    """pid -> (parent, whether it is a zombie), of all processes."""
    out = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                fields = Path(f"/proc/{entry}/stat").read_text().rsplit(")", 1)[1].split()
                out[int(entry)] = (int(fields[1]), fields[0] == "Z")
    return out


def descendants_of(program):
    """Our living descendants that run `program` (a path without links). Reaps those that we adopted and that have ended."""
    table = parents()
    children = {}
    for pid, (parent, _) in table.items():
        children.setdefault(parent, []).append(pid)
    found, todo = [], list(children.get(os.getpid(), []))
    while todo:
        pid = todo.pop()
        todo += children.get(pid, [])
        if table[pid][1]:
            continue
        with contextlib.suppress(OSError):
            # A package that was replaced meanwhile: "/usr/sbin/nginx (deleted)".
            if os.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)") == program:
                found.append(pid)
    return set(found)


def reap(own):
    """Takes leave of adopted children that have ended; `own`: pids that a Popen object waits for."""
    for pid, (parent, zombie) in parents().items():
        if zombie and parent == os.getpid() and pid not in own:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def inode_of(server_port, client_port):
    """The inode of the server's end of a connection over 127.0.0.1; None where it was not accepted yet."""
    # Searched as a text: there are thousands of lines of connections in TIME_WAIT.
    table = Path("/proc/net/tcp").read_text()
    at = table.find(f" 0100007F:{server_port:04X} 0100007F:{client_port:04X} ")
    inode = table[at:at + 200].split()[8] if at >= 0 else "0"
    return inode if inode != "0" else None


def owner_of(inode, pids):
    for pid in pids:
        with contextlib.suppress(OSError):
            for fd in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    if os.readlink(f"/proc/{pid}/fd/{fd}") == f"socket:[{inode}]":
                        return pid
    return None


def acceptor(port, pids_now, seconds=1.0):
    """The process that accepts a connection made now; None where it is refused, or none of them has it within `seconds`."""
    try:
        with socket.create_connection(("127.0.0.1", port), seconds) as client:
            client.sendall(HELLO)
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                inode = inode_of(port, client.getsockname()[1])
                if inode is not None:
                    pid = owner_of(inode, pids_now())
                    if pid is not None:
                        return pid
                time.sleep(0.005)
    except OSError:
        pass
    return None


def wait_accepted_by_new(port, pids_now, before, seconds):
    """Until a process that is not in `before` accepts a connection. Raises after `seconds`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        # Cheap looks first: this shares the cores with what it measures.
        if pids_now() - before:
            pid = acceptor(port, pids_now)
            if pid is not None and pid not in before:
                return pid
        time.sleep(0.01)
    raise TimeoutError(f"no new process accepts at port {port} after {seconds} s")


def listens(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def end_all(pids_now, own):
    """SIGTERM to all, and SIGKILL to what is still there after 3 s."""
    for sent, seconds in ((signal.SIGTERM, 3), (signal.SIGKILL, 3)):
        for pid in pids_now():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, sent)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            reap(own)
            if not pids_now():
                return
            time.sleep(0.05)
