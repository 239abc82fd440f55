#!/usr/bin/env python3
# clang_format.py ROOT: every .h and .cc is as clang-format 14 writes it by .clang-format; prints the files that are not, and exits 1.
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys

VERSION = "14"  # others break lines in other places
FOLDERS = ("src", "cmd", "tests")


def find_tool():
    for name in (f"clang-format-{VERSION}", "clang-format"):
        path = shutil.which(name)
        if path:
            said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
            if re.search(rf"version {VERSION}\.", said):
                return path
    return None


def sources(root):
    for folder in FOLDERS:
        for at, _, names in os.walk(os.path.join(root, folder)):
            yield from (os.path.join(at, name) for name in sorted(names) if name.endswith((".h", ".cc")))


def unformatted(tool, root):
    """The files below root, relative to it, that the tool would change."""
    files = sorted(sources(root))
    jobs = os.cpu_count() or 1
    shares = [share for share in (files[at::jobs] for at in range(jobs)) if share]

    def check(share):
        done = subprocess.run([tool, "--dry-run", "--ferror-limit=1", *share], cwd=root, capture_output=True, text=True, check=True)
        return {match.group(1) for match in re.finditer(r"^(\S+):\d+:\d+: warning: ", done.stderr, re.M)}

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return sorted(os.path.relpath(path, root) for found in pool.map(check, shares) for path in found)


def main():
    if len(sys.argv) != 2:
        print("usage: clang_format.py ROOT", file=sys.stderr)
        return 2
    tool = find_tool()
    if tool is None:
        print(f"format: clang-format {VERSION} is not installed: deploy/install-deps.sh does it", file=sys.stderr)
        return 1
    found = unformatted(tool, sys.argv[1])
    for path in found:
        print(f"{path}: not as clang-format writes it (clang-format-{VERSION} -i {path})")
    print(f"format: {len(found)} files to format")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
