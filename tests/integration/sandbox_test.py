# sandbox_test.py BIN UNIT: the daemon does its work with no more than the systemd unit leaves it.
#
# Without a systemd that runs: this program makes the same sandbox. A mount namespace in which everything but one directory
# is read-only; another user, without capabilities and without ways to get any; and a filter of system calls with the lists,
# the address families and the ban on writable code that UNIT names. What the filter does not allow ends the process, so
# nothing that is refused can be missed. Skipped (77), which ctest says, without root or on another machine than x86-64.
import ctypes
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

SKIPPED, LONG_WAIT = 77, 30
UNPRIVILEGED = 65534  # a user id without rights
libc = ctypes.CDLL(None, use_errno=True)

# Numbers of Linux on x86-64.
CLONE_NEWNS = 0x20000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, PR_CAPBSET_DROP, SECCOMP_MODE_FILTER = 38, 22, 24, 2
AUDIT_ARCH_X86_64, KILL, ALLOW, ERRNO = 0xC000003E, 0x80000000, 0x7FFF0000, 0x00050000
LOAD, JUMP_EQUAL, AND, RETURN = 0x20, 0x15, 0x54, 0x06
NUMBER, ARCHITECTURE, ARGUMENT_0, ARGUMENT_2 = 0, 4, 16, 32
PROT_WRITE, PROT_EXEC, EAFNOSUPPORT = 2, 4, 97
FAMILIES = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10}


def unit_values(unit, key):
    with open(unit, encoding="utf-8") as file:
        return [line.split("=", 1)[1].strip() for line in file if line.startswith(key + "=")]


def known_sets():
    """Sets of system calls by name, from system_calls.txt."""
    sets, name = {}, None
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "system_calls.txt"), encoding="utf-8") as file:
        for line in file:
            if line.startswith("@"):
                name = line.strip().rstrip(":")
                sets[name] = set()
            elif not line.startswith("#"):
                sets[name] |= set(line.split())
    return sets


def systemd_members(name):
    """The same set as the systemd of this host has it."""
    if not name.startswith("@"):
        return {name}
    text = subprocess.run(["systemd-analyze", "syscall-filter", name], check=True, capture_output=True, text=True).stdout
    words = [line.split("#")[0].strip() for line in text.splitlines()[1:]]
    return set().union(*(systemd_members(word) for word in words if word))


def allowed_calls(unit):
    allowed, sets = set(), known_sets()
    for value in unit_values(unit, "SystemCallFilter"):
        calls = set().union(*(sets[word] if word.startswith("@") else {word} for word in value.lstrip("~").split()))
        allowed = allowed - calls if value.startswith("~") else allowed | calls
    return allowed


def call_numbers():
    with open("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", encoding="utf-8") as file:
        return {name: int(number) for name, number in re.findall(r"#define __NR_(\w+)\s+(\d+)", file.read())}


def make_filter(unit):
    numbers = call_numbers()
    families = [FAMILIES[name] for name in unit_values(unit, "RestrictAddressFamilies")[0].split()]
    no_new_code = unit_values(unit, "MemoryDenyWriteExecute") == ["yes"]
    program = []

    def add(code, value, if_true=0, if_false=0):
        program.append(struct.pack("<HBBI", code, if_true, if_false, value))

    def give(verdict):
        add(RETURN, verdict)

    add(LOAD, ARCHITECTURE)
    add(JUMP_EQUAL, AUDIT_ARCH_X86_64, 1, 0)
    give(KILL)
    add(LOAD, NUMBER)
    add(JUMP_EQUAL, numbers["socket"], 0, 2 + 2 * len(families))
    add(LOAD, ARGUMENT_0)
    for family in families:
        add(JUMP_EQUAL, family, 0, 1)
        give(ALLOW)
    give(ERRNO | EAFNOSUPPORT)  # what systemd's filter says; the resolver asks for netlink and does without
    if no_new_code:
        add(JUMP_EQUAL, numbers["mmap"], 0, 5)
        add(LOAD, ARGUMENT_2)
        add(AND, PROT_WRITE | PROT_EXEC)
        add(JUMP_EQUAL, PROT_WRITE | PROT_EXEC, 0, 1)
        give(KILL)
        give(ALLOW)
        for name in ("mprotect", "pkey_mprotect"):
            add(JUMP_EQUAL, numbers[name], 0, 5)
            add(LOAD, ARGUMENT_2)
            add(AND, PROT_EXEC)
            add(JUMP_EQUAL, PROT_EXEC, 0, 1)
            give(KILL)
            give(ALLOW)
    for name in sorted(allowed_calls(unit)):
        if name in numbers:
            add(JUMP_EQUAL, numbers[name], 0, 1)
            give(ALLOW)
    give(KILL)
    return b"".join(program), len(program)


def check(result, what):
    if result != 0:
        raise OSError(ctypes.get_errno(), what + ": " + os.strerror(ctypes.get_errno()))


def read_only_but(folder):
    check(libc.unshare(CLONE_NEWNS), "unshare")
    check(libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None), "private mounts")
    check(libc.mount(folder.encode(), folder.encode(), None, MS_BIND, None), "bind")
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        points = [line.split()[4] for line in file]
    for point in points:
        if point != folder and not point.startswith("/proc"):
            libc.mount(b"none", point.encode(), None, MS_REMOUNT | MS_BIND | MS_RDONLY, None)


def enter(unit, folder, command):
    """In the child: becomes the daemon in its sandbox."""
    read_only_but(folder)
    filter_code, length = make_filter(unit)
    for capability in range(64):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    os.setgroups([])
    os.setgid(UNPRIVILEGED)
    os.setuid(UNPRIVILEGED)
    for path in ("/tmp/sluice-sandbox-probe", "/sluice-sandbox-probe", "/dev/shm/sluice-sandbox-probe"):
        try:
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
            raise AssertionError(path + " can be written: this is no sandbox")
        except OSError:
            pass
    check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    code = ctypes.create_string_buffer(filter_code)
    argument = struct.pack("<HxxxxxxQ", length, ctypes.addressof(code))
    check(libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, argument, 0, 0), "seccomp")
    os.execv(command[0], command)


class SandboxTest(unittest.TestCase):
    bin = unit = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="sluice.")
        os.chmod(self.folder, 0o777)
        self.children = []

    def tearDown(self):
        for child in self.children:
            if child.poll() is None:
                child.kill()
            child.wait(timeout=LONG_WAIT)
        shutil.rmtree(self.folder)

    def start(self, command):
        out = open(f"{self.folder}/{len(self.children)}.out", "wb")
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
        out.close()
        self.children.append(child)
        return child

    def sandboxed(self, *command):
        return self.start([sys.executable, os.path.abspath(__file__), "--enter", self.unit, self.folder, *command])

    def read(self, name):
        """What the file of that name has so far; nothing if it is not there yet."""
        try:
            with open(f"{self.folder}/{name}", encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def output(self, index):
        return self.read(f"{index}.out")

    def run_bin(self, name, *arguments):
        return subprocess.run([f"{self.bin}/{name}", *arguments], capture_output=True, text=True, timeout=LONG_WAIT)

    def until(self, holds, why):
        end = time.monotonic() + LONG_WAIT
        while not holds():
            self.assertLess(time.monotonic(), end, why())
            time.sleep(0.01)

    def test_the_sandbox_holds(self):
        """What the filter bans ends a program, and what is mounted read-only stays as it is."""
        for code, expected in [("import os; os.getpid()", 0), ("import os; os.chroot('/')", -signal.SIGSYS),
                               ("import mmap; mmap.mmap(-1, 4096, prot=7)", -signal.SIGSYS),
                               ("import socket; socket.socket(17, 3)", 1), ("open('/tmp/x', 'w')", 1)]:
            self.assertEqual(self.sandboxed("/usr/bin/python3", "-c", code).wait(timeout=LONG_WAIT), expected, code)

    def test_the_lists_are_systemds(self):
        systemd = shutil.which("systemd-analyze")
        version = subprocess.run([systemd, "--version"], capture_output=True, text=True, check=True).stdout.split() if systemd else []
        if version[1:2] != ["252"]:
            self.skipTest("compares with systemd 252, which is not here")
        for name, calls in known_sets().items():
            self.assertEqual(calls, systemd_members(name), name)

    def test_the_unit_says_what_is_sandboxed_here(self):
        """What this program does without systemd stands in the unit."""
        for key, value in [("NoNewPrivileges", "yes"), ("ProtectSystem", "strict"), ("CapabilityBoundingSet", ""), ("User", "sluice"),
                           ("MemoryDenyWriteExecute", "yes"), ("RestrictAddressFamilies", "AF_INET AF_INET6 AF_UNIX")]:
            self.assertEqual(unit_values(self.unit, key), [value], key)

    def test_core_dumps_are_asked_for(self):
        """proc(5): what /proc has of a process that is not dumpable belongs to root, else to its user."""
        with open(f"{self.bin}/sluiced", "rb") as file:
            program = file.read()
        shutil.copy(f"{self.bin}/sluiced", self.folder)  # the build may lie where that user cannot look
        config = f"{self.folder}/sluice.yaml"
        with open(config, "w", encoding="utf-8") as file:
            file.write("listeners: [{address: 127.0.0.1:0}]\nclusters: [{name: a, endpoints: [127.0.0.1:1]}]\n"
                       f"admin: {{grpc: 'unix:{self.folder}/admin.sock'}}\n")
        sanitized = b"__asan_init" in program or b"__tsan_init" in program  # stays readable: its leak check is a debugger
        for flags, owner in [((), UNPRIVILEGED if sanitized else 0), (("--core-dumps",), UNPRIVILEGED)]:
            index = len(self.children)
            daemon = self.sandboxed(f"{self.folder}/sluiced", "-c", config, *flags)
            self.until(lambda: daemon.poll() is not None or "is ready" in self.output(index), lambda: self.output(index))
            self.assertIsNone(daemon.poll(), self.output(index))
            self.assertEqual(os.stat(f"/proc/{daemon.pid}/environ").st_uid, owner, flags)
            daemon.terminate()
            self.assertEqual(daemon.wait(timeout=LONG_WAIT), 0, self.output(index))

    def test_the_daemon_works_in_it(self):
        folder = self.folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            http = free.getsockname()[1]
        self.start([f"{self.bin}/sluice-echo", "server", "--listen", "127.0.0.1:0", "--name", "echo"])
        self.until(lambda: "listening on" in self.output(0), lambda: self.output(0))
        backend = self.output(0).split()[-1].rsplit(":", 1)[1]
        config = f"{folder}/sluice.yaml"
        with open(config, "w", encoding="utf-8") as file:
            file.write(f"""
listeners: [{{address: "unix:{folder}/listen.sock"}}, {{address: "127.0.0.1:0"}}]
admin: {{grpc: "unix:{folder}/admin.sock", http: "127.0.0.1:{http}"}}
clusters:
  - {{name: echo, endpoints: ["localhost:{backend}"]}}
routes: [{{cluster: echo, hash_by: random, retry: {{attempts: 3}}, cache: {{ttl: 1s, methods: [sluice.echo.v1.Echo/Unary]}}}}]
state_file: {folder}/state
log: {{path: {folder}/sluice.log}}
access_log: {{format: json, path: {folder}/access.log}}
""")
        self.assertEqual(self.run_bin("sluiced", "--check", "-c", config).stdout, "OK\n")
        shutil.copy(f"{self.bin}/sluiced", folder)  # the build may lie where that user cannot look
        daemon = self.sandboxed(f"{folder}/sluiced", "-c", config)

        def why():
            return f"{self.output(1)} {self.read('sluice.log')} exit {daemon.poll()}"

        def ctl(*words):
            return self.run_bin("sluicectl", "--address", f"unix:{folder}/admin.sock", *words)

        self.until(lambda: daemon.poll() is not None or "ready" in ctl("status").stdout, why)
        self.assertIsNone(daemon.poll(), why())
        with open(f"/proc/{daemon.pid}/status", encoding="utf-8") as file:
            status = dict(line.split(":\t", 1) for line in file.read().splitlines())
        self.assertEqual((status["NoNewPrivs"], status["Seccomp"], status["Uid"].split()[0]), ("1", "2", str(UNPRIVILEGED)))
        self.assertEqual(int(status["CapEff"], 16) | int(status["CapBnd"], 16), 0)
        calls = self.run_bin("sluice-echo", "client", "--target", f"unix:{folder}/listen.sock", "--kind", "all",
                             "--calls", "200")
        self.assertEqual(calls.returncode, 0, calls.stdout + calls.stderr + why())
        for words in (["endpoints", "echo"], ["add", "echo", "x=127.0.0.1:2"], ["remove", "echo", "x"],
                      ["add", "echo", "kept=127.0.0.1:2"], ["limits"], ["metrics"],
                      ["cache", "purge"], ["log-level", "debug"], ["reload"]):
            result = ctl(*words)
            self.assertEqual(result.returncode, 0, f"{words}: {result.stderr} {why()}")
        with socket.create_connection(("127.0.0.1", http), LONG_WAIT) as page:
            page.sendall(b"GET /readyz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            self.assertIn(b"200", page.recv(4096))
        for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGTERM):
            daemon.send_signal(number)
        self.assertEqual(daemon.wait(timeout=LONG_WAIT), 0, why())
        self.assertEqual(len(self.read("access.log").splitlines()), 200)
        # What was changed is in the state file, and it reads it there when it starts again.
        daemon = self.sandboxed(f"{folder}/sluiced", "-c", config)
        self.until(lambda: daemon.poll() is not None or "ready" in ctl("status").stdout, why)
        self.assertIn("kept", ctl("endpoints", "echo").stdout, why())
        # It may start its own program, and hand over what it has, in the same sandbox.
        result = ctl("upgrade")
        self.assertEqual(result.returncode, 0, f"{result.stderr} {why()}")
        self.assertIn("kept", ctl("endpoints", "echo").stdout, why())
        calls = self.run_bin("sluice-echo", "client", "--target", f"unix:{folder}/listen.sock", "--kind", "all",
                             "--calls", "200")
        self.assertEqual(calls.returncode, 0, calls.stdout + calls.stderr + why())
        self.assertEqual(daemon.wait(timeout=LONG_WAIT), 0, why())
        self.assertEqual(ctl("stop").returncode, 0, why())


def main():
    if sys.argv[1] == "--enter":
        enter(sys.argv[2], sys.argv[3], sys.argv[4:])
    if os.geteuid() != 0 or os.uname().machine != "x86_64":
        print("skipped: needs root and x86-64")
        sys.exit(SKIPPED)
    SandboxTest.bin, SandboxTest.unit = (os.path.abspath(path) for path in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1], verbosity=2)


if __name__ == "__main__":
    main()
