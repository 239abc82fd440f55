# image.py BIN FIRST OUT VERSION: a container image from scratch in OCI's layout, in the folder OUT. In it: sluiced and sluicectl of BIN
# with the shared libraries that they load and no other, the certificates of the authorities, the configuration FIRST, a user without
# rights. No shell, no package manager. SOURCE_DATE_EPOCH dates everything, so that the same programs make the same image.
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

USER = 65532
LDD_S = 30
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
TYPE = "application/vnd.oci.image."
STAMP = int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))


def libraries(programs):
    """{path in the image: file}: what the loader finds for `programs`, under the paths where it will look."""
    out = {}
    for program in programs:
        text = subprocess.run(["ldd", program], check=True, capture_output=True, text=True, timeout=LDD_S).stdout
        if "not found" in text:
            sys.exit(f"image: {program} lacks a library:\n{text}")
        for name, path in re.findall(r"^\s*(?:(\S+) => )?(/\S+) \(0x", text, re.M):
            # Debian's /lib is a link to /usr/lib; the loader itself is named by its path in each program.
            out["lib64/" + os.path.basename(path) if not name else "usr/lib/x86_64-linux-gnu/" + name] = os.path.realpath(path)
    return out


class Layer:
    def __init__(self):
        self.bytes = io.BytesIO()
        self.tar = tarfile.open(fileobj=self.bytes, mode="w", format=tarfile.PAX_FORMAT)
        self.folders = set()

    def entry(self, path, mode, owner=0):
        info = tarfile.TarInfo(path)
        info.mode, info.mtime, info.uid, info.gid = mode, STAMP, owner, owner
        return info

    def folder(self, path, mode=0o755, owner=0):
        if os.path.dirname(path):
            self.folder(os.path.dirname(path))
        if path not in self.folders:
            self.folders.add(path)
            info = self.entry(path, mode, owner)
            info.type = tarfile.DIRTYPE
            self.tar.addfile(info)

    def text(self, path, data, mode=0o644):
        self.folder(os.path.dirname(path))
        info = self.entry(path, mode)
        info.size = len(data)
        self.tar.addfile(info, io.BytesIO(data))

    def done(self):
        self.tar.close()
        return self.bytes.getvalue()


def read(path):
    with open(path, "rb") as file:
        return file.read()


def stripped(path):
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run(["strip", "--strip-unneeded", "-o", out.name, path], check=True, timeout=LDD_S)
        return read(out.name)


def make_layer(programs, first):
    layer = Layer()
    daemon, control = (os.path.join(programs, name) for name in ("sluiced", "sluicectl"))
    layer.text("usr/sbin/sluiced", stripped(daemon), 0o755)
    layer.text("usr/bin/sluicectl", stripped(control), 0o755)
    for path, file in sorted(libraries([daemon, control]).items()):
        layer.text(path, read(file), 0o755)
    layer.text("etc/ssl/certs/ca-certificates.crt", read(CERTIFICATES))
    layer.text("etc/passwd", f"root:x:0:0:root:/:/sbin/nologin\nsluice:x:{USER}:{USER}:Sluice:/:/sbin/nologin\n".encode())
    layer.text("etc/group", f"root:x:0:\nsluice:x:{USER}:\n".encode())
    layer.text("etc/nsswitch.conf", b"hosts: files dns\n")
    layer.text("etc/sluice/sluice.yaml", read(first))
    layer.folder("tmp", 0o1777)
    layer.folder("run/sluice", 0o750, USER)
    return layer.done()


class Store:
    def __init__(self, out):
        self.blobs = os.path.join(out, "blobs/sha256")
        os.makedirs(self.blobs)

    def add(self, data, kind):
        digest = hashlib.sha256(data).hexdigest()
        with open(os.path.join(self.blobs, digest), "wb") as file:
            file.write(data)
        return {"mediaType": kind, "digest": "sha256:" + digest, "size": len(data)}

    def add_json(self, value, kind):
        return self.add(json.dumps(value, sort_keys=True).encode(), kind)


def main():
    programs, first, out, version = sys.argv[1:5]
    shutil.rmtree(out, ignore_errors=True)
    store = Store(out)
    plain = make_layer(programs, first)
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(STAMP))
    config = {
        "created": created, "architecture": "amd64", "os": "linux",
        "config": {"User": f"{USER}:{USER}", "Entrypoint": ["/usr/sbin/sluiced"], "Cmd": ["-c", "/etc/sluice/sluice.yaml"],
                   "Env": ["PATH=/usr/sbin:/usr/bin", "RUNTIME_DIRECTORY=/run/sluice", "SLUICE_ADMIN=unix:/run/sluice/admin.sock"],
                   "StopSignal": "SIGTERM", "WorkingDir": "/",
                   "Labels": {"org.opencontainers.image.title": "sluice", "org.opencontainers.image.version": version}},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(plain).hexdigest()]},
        "history": [{"created": created, "created_by": "deploy/build-image.sh"}],
    }
    layer = store.add(gzip.compress(plain, mtime=STAMP), TYPE + "layer.v1.tar+gzip")
    manifest = {"schemaVersion": 2, "mediaType": TYPE + "manifest.v1+json",
                "config": store.add_json(config, TYPE + "config.v1+json"), "layers": [layer]}
    entry = store.add_json(manifest, TYPE + "manifest.v1+json")
    entry["annotations"] = {"org.opencontainers.image.ref.name": version}
    index = {"schemaVersion": 2, "mediaType": TYPE + "index.v1+json", "manifests": [entry]}
    for name, value in (("index.json", index), ("oci-layout", {"imageLayoutVersion": "1.0.0"})):
        with open(os.path.join(out, name), "w", encoding="utf-8") as file:
            json.dump(value, file)
    print(f"{out}: {version}, {len(plain) / 1e6:.1f} MB, {layer['size'] / 1e6:.1f} MB to transfer")


if __name__ == "__main__":
    main()
