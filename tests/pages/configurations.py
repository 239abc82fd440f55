#!/usr/bin/env python3
# configurations.py ROOT SLUICED: each whole configuration that a page shows passes `sluiced --check`, and each that it shows of
# HAProxy or nginx passes theirs where the program is installed. Prints what fails, and exits 1 if anything does.
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.S | re.M)
# Files that blocks name. Those that need files of their own (certificates) say "tls:" with paths and are not whole here.
THEIRS = {"haproxy": ["haproxy", "-c", "-f"], "nginx": ["nginx", "-t", "-e", "stderr", "-p", "@FOLDER@", "-c"]}


def blocks(root):
    """(place, language, text) of each fenced block of the pages."""
    for path in [os.path.join(root, "README.md")] + sorted(glob.glob(os.path.join(root, "docs", "*.md"))):
        with open(path, encoding="utf-8") as file:
            page = file.read()
        for match in FENCE.finditer(page):
            yield f"{os.path.relpath(path, root)}:{page[:match.start()].count(chr(10)) + 2}", match.group(1), match.group(2)


def whole(text):
    """Whether a block of YAML is a configuration of ours and not a part of one."""
    return re.search(r"^listeners:", text, re.M) and re.search(r"^clusters:", text, re.M) and "..." not in text


def run(command, place):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if done.returncode == 0:
        return []
    return [f"{place}: {' '.join(command)}: {done.stdout}{done.stderr}"]


def files_of(text):
    """Paths that the block gives as values of keys that name files which are read."""
    return re.findall(r"\b(?:ca|certificate|key|client_ca|descriptor_set|bootstrap|password_file|state_file): *([\w./-]+)", text)


def check(root, sluiced):
    found, count = [], {}
    with tempfile.TemporaryDirectory() as folder:
        for place, language, text in blocks(root):
            if language == "yaml" and whole(text):
                if files_of(text):
                    print(f"{place}: not checked, it names files: {', '.join(files_of(text))}")
                    continue
                kind, command = "sluice", [sluiced, "--check", "-c"]
            elif language in THEIRS:
                if shutil.which(language) is None:
                    print(f"{place}: not checked, {language} is not installed (deploy/install-deps.sh peers)")
                    continue
                kind, command = language, [word.replace("@FOLDER@", folder) for word in THEIRS[language]]
            else:
                continue
            # Their files name folders that need not be there.
            text = text.replace("/run/haproxy/", folder + "/")
            if language == "nginx":
                text = f"pid {folder}/nginx.pid;\n" + text.replace("http {\n", "http {\n" + "".join(
                    f"    {kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
                    + "    access_log off;\n", 1)
            path = os.path.join(folder, f"{kind}-{len(count)}.conf")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            count[kind] = count.get(kind, 0) + 1
            found += run([*command, path], place)
    # A page each for Envoy, HAProxy, nginx and Linkerd, the README, and the page on production.
    if count.get("sluice", 0) < 6:
        found.append(f"only {count.get('sluice', 0)} configurations of ours are in the pages: the check has missed some")
    return found, count


def main():
    found, count = check(sys.argv[1], sys.argv[2])
    for one in found:
        print(one)
    print(f"checked {count}: {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
