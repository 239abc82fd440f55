# The peers: how each is configured for given backends and started. Templates in conf/, with @NAME@ for what is filled in.
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from processes import SERVER_NAME

CONF = Path(__file__).resolve().parent / "conf"
PORT = 7070


@dataclass(frozen=True)
class Peer:
    name: str
    title: str
    program: str             # looked for on the path; "sluiced": the build's. "": none, the client itself
    conf: str                # template
    command: Callable        # (program, path of the configuration) -> its command line
    endpoint: Callable       # (index, address) -> its line or word
    joint: str = "\n"        # between two endpoints
    # Of a template with TLS to the backends, and without. `ca`: a path.
    tls: Callable = lambda ca: ""
    plain: str = ""
    schemes: tuple = ("", "")


def host_port(address):
    return address.rsplit(":", 1)


ALL = [
    Peer("sluice", "Sluice", "sluiced", "sluice.yaml", lambda program, conf: [program, "-c", conf],
         lambda index, address: f'{{name: b{index}, address: "{address}"}}', ", ",
         tls=lambda ca: f'tls: {{ca: "{ca}", server_name: {SERVER_NAME}}}'),
    Peer("haproxy", "HAProxy", "haproxy", "haproxy.cfg", lambda program, conf: [program, "-db", "-f", conf],
         lambda index, address: f"    server s{index} {address}",
         tls=lambda ca: f"ssl verify required ca-file {ca} sni str({SERVER_NAME}) verifyhost {SERVER_NAME} alpn h2 "
                        f"check-sni {SERVER_NAME} check-alpn h2",
         plain="proto h2 check-proto h2"),  # with TLS the checks work only where ALPN alone chooses the protocol
    Peer("nginx", "nginx", "nginx", "nginx.conf", lambda program, conf: [program, "-c", conf, "-e", "/dev/null"],
         lambda index, address: f"        server {address} max_fails=3 fail_timeout=2s;",
         tls=lambda ca: f"grpc_ssl_verify on; grpc_ssl_trusted_certificate {ca}; grpc_ssl_name {SERVER_NAME}; grpc_ssl_server_name on;",
         schemes=("grpc", "grpcs")),
    Peer("nghttpx", "nghttpx", "nghttpx", "nghttpx.conf", lambda program, conf: [program, f"--conf={conf}"],
         lambda index, address: f"backend={','.join(host_port(address))};;@KIND@;proto=h2;fall=1;rise=1",
         tls=lambda ca: f"cacert={ca}", schemes=("no-tls", f"tls;sni={SERVER_NAME}")),
    # The client with its own list of backends, retries and outlier detection; no proxy.
    Peer("grpc", "gRPC C++'s client", "", "grpc-client.json", lambda program, conf: [], lambda index, address: ""),
]
PEERS = {peer.name: peer for peer in ALL}


# Sluice with other retries. They are measured where they are asked for by name.
def variant(name, title):
    return Peer(name, title, "sluiced", f"{name}.yaml", ALL[0].command, ALL[0].endpoint, ALL[0].joint, ALL[0].tls)


VARIANTS = {peer.name: peer for peer in (variant("sluice-all", "Sluice, all methods"), variant("sluice-none", "Sluice, no retries"),
                                         variant("sluice-poison", "Sluice, all methods on a ring"))}
EVERY = PEERS | VARIANTS


# Its program, or None where it is not installed.
def program_of(peer, build):
    if peer.program == "sluiced":
        path = build / "bin" / "sluiced"
        return str(path) if path.exists() else None
    return shutil.which(peer.program)


def version_of(peer, build):
    if not peer.program:
        client = build / "bin" / "matrix" / "matrix_client"
        found = re.search(r"libgrpc\+\+\.so\.(\S+)", subprocess.run(["ldd", client], capture_output=True, text=True, check=False).stdout)
        return found.group(1) if found else "?"
    flag = {"haproxy": "-v", "nginx": "-v"}.get(peer.name, "--version")
    said = subprocess.run([program_of(peer, build), flag], capture_output=True, text=True, check=False)
    found = re.search(r"\d+\.\d+(\.\d+)?", said.stdout + said.stderr)
    return found.group(0) if found else "?"


# Writes the configuration for these backends' addresses into `own`: its path. `folder`: of the run. `host`: where it listens, at PORT.
# `ca`: the authority of the backends' certificates, or None. `health`: the mode of Sluice's active health.
def configure(peer, folder, own, host, addresses, ca, health):
    kind = peer.schemes[1 if ca else 0]
    names = {
        "LISTEN": f"{host}:{PORT}", "LISTEN_COMMA": f"{host},{PORT}", "RUN": own,
        "DESCRIPTORS": f"{folder}/matrix.descriptors", "TLS": peer.tls(ca) if ca else peer.plain, "SCHEME": kind, "HEALTH": health,
        "ENDPOINTS": peer.joint.join(peer.endpoint(i, a) for i, a in enumerate(addresses, 1)).replace("@KIND@", kind)}
    path = Path(own) / peer.conf
    path.write_text(re.sub(r"@([A-Z_]+)@", lambda m: str(names[m[1]]), (CONF / peer.conf).read_text(encoding="utf-8")), encoding="utf-8")
    return path
