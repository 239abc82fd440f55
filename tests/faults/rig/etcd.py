# Etcd: a real server, one member of its cluster or the only one, and its client. Network: a namespace of its own for it, whose cable can be pulled.
import os
import shutil
import subprocess

from rig.process import Process
from rig.wait import LONG_WAIT, eventually

MAC = "02:00:00:00:00:02"


class Etcd(Process):
    # `host` is an address that no other process of the test binds. `inside`: a Network that it runs in. `peers`: the hosts of all members.
    # `tls`: the folder of make_certificates; clients need a certificate then.
    def __init__(self, host, folder, output, inside=None, peers=(), tls=None):
        self.host, self.folder, self.inside = host, folder, inside
        self.address = f"{host}:2379"
        self.as_user = ()
        self.tls = ("--cacert", f"{tls}/ca.pem", "--cert", f"{tls}/client.pem", "--key", f"{tls}/client.key") if tls else ()
        scheme = "https" if tls else "http"
        local = f",{scheme}://127.0.0.1:2379" if inside else ""
        secured = ("--cert-file", f"{tls}/server.pem", "--key-file", f"{tls}/server.key", "--client-cert-auth",
                   "--trusted-ca-file", f"{tls}/ca.pem") if tls else ()
        super().__init__(
            ["etcd", "--name", host, "--data-dir", folder, "--logger", "zap", "--log-level", "warn", *secured,
             "--listen-client-urls", f"{scheme}://{self.address}{local}", "--advertise-client-urls", f"{scheme}://{self.address}",
             "--listen-peer-urls", f"http://{host}:2380", "--initial-advertise-peer-urls", f"http://{host}:2380",
             "--initial-cluster", ",".join(f"{peer}=http://{peer}:2380" for peer in peers or [host])],
            output, wrapper=inside.enter if inside else ())

    # Returns when it answers.
    def start(self):
        super().start()
        self.wait()

    def wait(self):
        eventually(lambda: self.running() and self.ctl("get", "/", check=False).returncode == 0, "etcd answers")

    # The data are gone; it comes back as if it were new, with the same flags.
    def lose_data(self):
        shutil.rmtree(self.folder)

    # From within its own network, so that a pulled cable does not matter.
    def ctl(self, *arguments, check=True, text=None):
        where = "127.0.0.1:2379" if self.inside else self.address
        if self.tls:
            where = f"https://{where}"
        command = [*(self.inside.enter if self.inside else ()), "etcdctl", "--endpoints", where, "--dial-timeout", "1s",
                   "--command-timeout", "2s", *self.tls, *self.as_user, *arguments]
        return subprocess.run(command, env={**os.environ, "ETCDCTL_API": "3"}, capture_output=True, text=True, check=check,
                              timeout=LONG_WAIT, input=text)

    def put(self, key, value):
        self.ctl("put", key, value)

    # In one revision.
    def put_all(self, keys):
        puts = "".join(f'put "{key}" "{value}"\n' for key, value in keys.items())
        self.ctl("txn", text=f"\n{puts}\n\n")

    def delete(self, key):
        self.ctl("del", key)

    def keys(self, prefix):
        return self.ctl("get", "--prefix", "--keys-only", prefix).stdout.split()

    # The revision in which the key has come; it has another one when it has been away.
    def created(self, key):
        text = self.ctl("get", key, "-w", "json").stdout
        if '"create_revision":' not in text:
            raise AssertionError(f"{key} is not there: {text}")
        return int(text.split('"create_revision":')[1].split(",")[0])

    def revision(self):
        # {"header":{...,"revision":N,...}}
        text = self.ctl("get", "/", "-w", "json").stdout
        return int(text.split('"revision":')[1].split(",")[0].rstrip("}"))

    def compact(self):
        self.ctl("compaction", str(self.revision()))

    # Passwords are needed from now on; `name` may read and write below the prefix.
    def require_user(self, name, password, prefix):
        for command in ("user add root:root", "user grant-role root root", "role add one",
                        f"role grant-permission one --prefix=true readwrite {prefix}", f"user add {name}:{password}",
                        f"user grant-role {name} one"):
            if command.startswith("user grant-role root"):
                self.ctl("role", "add", "root", check=False)
            self.ctl(*command.split())
        self.ctl("auth", "enable")
        self.as_user = ("--user", "root:root")


# Certificates for a server at `host` and a client, of an authority of their own: ca.pem, server.pem, server.key, client.pem, client.key.
def make_certificates(folder, host):
    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=LONG_WAIT, cwd=folder)
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=authority", "-days", "2")
    with open(f"{folder}/extensions", "w", encoding="ascii") as file:
        file.write(f"subjectAltName=DNS:etcd.test,IP:{host}\nextendedKeyUsage=serverAuth,clientAuth\n")
    for name in ("server", "client"):
        openssl("req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out", f"{name}.pem",
                "-days", "2", "-extfile", "extensions")


class Network:
    # None where it is not permitted.
    @staticmethod
    def make():
        number = os.getpid() % 60000
        network = Network(f"sluice-{number}", f"10.213.{number // 250}.{{}}", f"sl{number}")
        if network._run("ip", "netns", "add", network.name, check=False).returncode != 0:
            return None
        network._run("ip", "link", "add", f"{network.cable}a", "type", "veth", "peer", "name", f"{network.cable}b")
        network._run("ip", "link", "set", f"{network.cable}b", "address", MAC)
        network._run("ip", "link", "set", f"{network.cable}b", "netns", network.name)
        network._run("ip", "address", "add", network.address.format(1) + "/30", "dev", f"{network.cable}a")
        network._run("ip", "link", "set", f"{network.cable}a", "up")
        # As where a router is between both: else the kernel asks for the address once a second, and packets wait for that.
        network._run("ip", "neighbour", "add", network.host, "lladdr", MAC, "nud", "permanent", "dev", f"{network.cable}a")
        network._run(*network.enter, "ip", "address", "add", network.host + "/30", "dev", f"{network.cable}b")
        network._run(*network.enter, "ip", "link", "set", "lo", "up")
        network.plug_in()
        return network

    def __init__(self, name, address, cable):
        self.name, self.address, self.cable = name, address, cable
        self.host = address.format(2)
        self.enter = ("ip", "netns", "exec", name)

    def _run(self, *command, check=True):
        return subprocess.run(command, check=check, capture_output=True, timeout=LONG_WAIT)

    # Packets are lost on their way, in both directions, without an error to either side.
    def pull_out(self):
        self._run(*self.enter, "ip", "link", "set", f"{self.cable}b", "down")

    def plug_in(self):
        self._run(*self.enter, "ip", "link", "set", f"{self.cable}b", "up")

    def remove(self):
        self._run("ip", "link", "del", f"{self.cable}a", check=False)
        self._run("ip", "netns", "del", self.name, check=False)
